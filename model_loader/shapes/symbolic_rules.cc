// The types and shapes of what operators make, in symbols: a function for each kind, and a table of them. Those that
// move elements are in symbolic_moves.cc.
#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "model_loader/graph/operator_table.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/reshape.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/window_axis.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle {
namespace {

using ShapeResult = std::optional<SymbolicShape>;

bool IsElementwise(const Node& node) {
  const OnnxOperator* const row = FindOnnxOperator(node.domain, node.op);
  return row != nullptr && row->interpreter.rows == RowRule::kElementwise;
}

bool IsPlacedByAxis(const SymbolicNode& node) { return node.opset() < 7 && node.node().attributes.contains("axis"); }

// Whether the input broadcasts to whatever shape the other has.
bool IsSmall(const SymbolicValue& value, const SymbolicValue& other) {
  if (!value.shape) return false;
  const bool fits = value.shape->empty() || (other.shape && other.shape->size() >= value.shape->size());
  return fits && std::ranges::all_of(*value.shape, [](const SymbolicInt& size) { return size.Is(1); });
}

ShapeResult Broadcasted(const SymbolicNode& node, Symbols& symbols) {
  if (IsPlacedByAxis(node)) return std::nullopt;
  SymbolicShape result;
  for (size_t i = 0; i < node.size(); ++i) {
    if (node.ShapeOf(i) == nullptr) return std::nullopt;
    result = BroadcastSymbols(result, *node.ShapeOf(i), symbols);
  }
  return result;
}

// One dimension under a window that moves over it.
SymbolicInt Windowed(const SymbolicInt& size, const WindowAxis& window, AutoPad mode, bool cuts, Symbols& symbols) {
  const bool same = mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower;
  const int64_t padding = same ? window.Reach() - 1 : mode == AutoPad::kValid ? 0 : window.before + window.after;
  if (window.stride == 1 && padding == window.Reach() - 1) return size;
  if (const auto number = size.Number(); number && *number >= 0 && *number < (1 << 30)) {
    WindowAxis axis = window;
    axis.input = *number;
    if (mode != AutoPad::kExplicit) axis.before = axis.after = 0;
    if (same) axis.PadToSame(mode);
    return axis.Output() + (cuts && axis.HasCutWindow() ? 1 : 0);
  }
  const std::string what = Concat("window ", window.kernel, " ", window.stride, " ", window.dilation, " ", padding, " ",
                                  same ? "same" : "", cuts ? Concat("cut ", window.before) : "");
  return symbols.Size(what, std::array{size});
}

// Convolutions and pools make such planes. `kernel`: the weight's, or empty.
ShapeResult Planes(const SymbolicNode& node, SymbolicInt channels, const Shape& kernel, Symbols& symbols) {
  const SymbolicShape& x = *node.ShapeOf(0);
  const size_t planes = x.size() - 2;
  SymbolicShape result = {x[0], std::move(channels)};
  const auto sizes = kernel.size() == planes ? std::optional(kernel) : node.Ints("kernel_shape", planes, 0);
  const auto strides = node.Ints("strides", planes, 1), dilations = node.Ints("dilations", planes, 1),
             pads = node.Ints("pads", 2 * planes, 0);
  const StatusOr<AutoPad> mode = AutoPadOf(node.node());
  const auto cuts = node.Int("ceil_mode", 0);
  for (size_t d = 0; d < planes; ++d) {
    const bool known = sizes && strides && dilations && pads && mode.ok() && cuts;
    const WindowAxis window =
        known ? WindowAxis{0, (*sizes)[d], (*strides)[d], (*dilations)[d], (*pads)[d], (*pads)[d + planes]}
              : WindowAxis{0, 0, 0, 0};
    result.push_back(window.InRange() ? Windowed(x[d + 2], window, *mode, *cuts != 0, symbols) : symbols.New());
  }
  return result;
}

ShapeResult Convolved(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape *const x = node.ShapeOf(0), *const weight = node.ShapeOf(1);
  if (x == nullptr || x->size() < 3) return std::nullopt;
  if (weight == nullptr || weight->size() != x->size() || node.node().op == "ConvTranspose") {
    SymbolicShape result = symbols.OfRank(x->size());
    result[0] = x->front();
    return result;
  }
  Shape kernel;
  for (size_t d = 2; d < weight->size(); ++d) kernel.push_back((*weight)[d].Number().value_or(0));
  return Planes(node, weight->front(), kernel, symbols);
}

ShapeResult Pooled(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  if (x == nullptr || x->size() < 3) return std::nullopt;
  if (!node.node().op.starts_with("Global")) return Planes(node, (*x)[1], {}, symbols);
  SymbolicShape result = {(*x)[0], (*x)[1]};
  result.resize(x->size(), 1);
  return result;
}

ShapeResult OfSecond(const SymbolicNode& node, Symbols&) {
  return node.ShapeOf(1) == nullptr ? std::nullopt : ShapeResult(*node.ShapeOf(1));
}

ShapeResult Product(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape *const a = node.ShapeOf(0), *const b = node.ShapeOf(1);
  if (a == nullptr || b == nullptr || a->empty() || b->empty()) return std::nullopt;
  const size_t rows = a->size() > 1 ? 2 : 1, columns = b->size() > 1 ? 2 : 1;
  SymbolicShape result =
      BroadcastSymbols(SymbolicShape(a->begin(), a->end() - static_cast<ptrdiff_t>(rows)),
                       SymbolicShape(b->begin(), b->end() - static_cast<ptrdiff_t>(columns)), symbols);
  if (rows == 2) result.push_back((*a)[a->size() - 2]);
  if (columns == 2) result.push_back(b->back());
  return result;
}

ShapeResult GemmProduct(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape *const a = node.ShapeOf(0), *const b = node.ShapeOf(1);
  const auto turns_a = node.Int("transA", 0), turns_b = node.Int("transB", 0);
  SymbolicShape result = symbols.OfRank(2);
  if (a != nullptr && a->size() == 2 && turns_a) result[0] = (*a)[*turns_a != 0 ? 1 : 0];
  if (b != nullptr && b->size() == 2 && turns_b) result[1] = (*b)[*turns_b != 0 ? 0 : 1];
  return result;
}

ShapeResult Counted(const SymbolicNode&, Symbols& symbols) { return symbols.OfRank(1); }

// A recurrent layer's: [positions, directions, batch, channels], in an order that its layout says.
ShapeResult Stepped(const SymbolicNode&, Symbols& symbols) { return symbols.OfRank(4); }

ShapeResult Reduced(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const x = node.ShapeOf(0);
  const StatusOr<bool> keeps = KeepsAxes(node.node());
  if (x == nullptr || !keeps.ok()) return std::nullopt;
  std::optional<std::vector<int64_t>> axes;
  if (node.node().op.starts_with("Arg")) {
    const auto axis = node.Axis(0, x->size());
    if (axis) axes = {static_cast<int64_t>(*axis)};
  } else if (node.HasAxes(1)) {
    axes = node.Axes(1, x->size());
  }
  const bool all = !axes || axes->empty();
  if (!axes && node.HasAxes(1) && *keeps) return symbols.OfRank(x->size());
  if (all && (node.HasAxes(1) || node.Int("noop_with_empty_axes", 0) != 0)) return std::nullopt;
  if (all && node.node().op.starts_with("Arg")) return std::nullopt;
  SymbolicShape result;
  for (size_t i = 0; i < x->size(); ++i) {
    const bool goes = all || std::ranges::binary_search(*axes, static_cast<int64_t>(i));
    if (!goes) result.push_back((*x)[i]);
    if (goes && *keeps) result.emplace_back(1);
  }
  return result;
}

struct Rule {
  std::string_view op;
  ShapeResult (*run)(const SymbolicNode&, Symbols&);
};
constexpr Rule kRules[] = {
    {"ArgMax", Reduced},        {"ArgMin", Reduced},           {"AveragePool", Pooled},   {"Conv", Convolved},
    {"ConvInteger", Convolved}, {"ConvTranspose", Convolved},  {"GRU", Stepped},          {"GatherElements", OfSecond},
    {"Gemm", GemmProduct},      {"GlobalAveragePool", Pooled}, {"GlobalMaxPool", Pooled}, {"LSTM", Stepped},
    {"MatMul", Product},        {"MatMulInteger", Product},    {"MaxPool", Pooled},       {"RNN", Stepped},
    {"Range", Counted},
};

}  // namespace

SymbolicShape BroadcastSymbols(const SymbolicShape& a, const SymbolicShape& b, Symbols& symbols) {
  const SymbolicShape& shorter = a.size() >= b.size() ? b : a;
  SymbolicShape shape = a.size() >= b.size() ? a : b;
  for (size_t i = 1; i <= shorter.size(); ++i) {
    SymbolicInt& size = shape[shape.size() - i];
    const SymbolicInt& other = shorter[shorter.size() - i];
    if (other == size || other.Is(1)) continue;
    if (size.Is(1) || other.Number()) {
      size = other;  // another number than 1 is what the symbol has to be, if it isn't 1
    } else if (!size.Number()) {
      const bool in_order = size.Text() < other.Text();
      size = symbols.Size("broadcast", in_order ? std::array{size, other} : std::array{other, size});
    }
  }
  return shape;
}

std::optional<size_t> ShapeSource(const SymbolicNode& node) {
  if (!node.node().domain.empty() || node.size() == 0 || !node.Has(0)) return std::nullopt;
  if (FactsOf(node.node().domain, node.node().op).KeepsShape()) return 0;
  if (!IsElementwise(node.node()) || (IsPlacedByAxis(node) && node.size() > 1)) return std::nullopt;
  for (size_t i = 0; i < node.size(); ++i) {
    const SymbolicValue& candidate = node.In(i);
    bool decides = node.Has(i);
    for (size_t j = 0; j < node.size() && decides; ++j) {
      decides = node.Has(j) && (node.In(j).alike == candidate.alike || IsSmall(node.In(j), candidate));
    }
    if (decides) return i;
  }
  return std::nullopt;
}

std::optional<SymbolicShape> ResultShape(const SymbolicNode& node, size_t output, Symbols& symbols) {
  const std::string& op = node.node().op;
  if (output > 0) return op == "Split" ? MovedShape(node, output, symbols) : std::nullopt;
  if (op == "Shape" || op == "Size") {
    if (op == "Size") return SymbolicShape();
    const auto elements = ResultElements(node, symbols);
    return SymbolicShape{elements ? SymbolicInt(elements->shape.front()) : symbols.New()};
  }
  if (IsElementwise(node.node())) return Broadcasted(node, symbols);
  if (op.starts_with("Reduce")) return Reduced(node, symbols);
  const auto rule = std::ranges::find(kRules, op, &Rule::op);
  return rule == std::end(kRules) ? MovedShape(node, output, symbols) : rule->run(node, symbols);
}

std::optional<DType> TypeOfResult(const SymbolicNode& node, size_t output) {
  const std::string& op = node.node().op;
  if (output > 0 && op != "Split") return std::nullopt;
  if (op == "Cast" || op == "BitCast") {
    const StatusOr<DType> to = CastType(node.node());
    return to.ok() ? std::optional(*to) : std::nullopt;
  }
  if (op == "ConstantOfShape") {
    const auto value = node.node().attributes.find("value");
    if (value == node.node().attributes.end()) return DType::kFloat32;
    const auto* const tensor = std::get_if<Tensor>(&value->second);
    return tensor == nullptr ? std::nullopt : std::optional(tensor->dtype);
  }
  if (op == "QuantizeLinear" && node.node().attributes.contains("output_dtype")) return std::nullopt;
  if (op == "QuantizeLinear" && !node.Has(2)) return DType::kUint8;
  if (op == "DequantizeLinear" && node.node().attributes.contains("output_dtype")) return std::nullopt;
  const ResultType type = FactsOf(node.node().domain, op).Type();
  return type.Input() ? node.In(*type.Input()).dtype : type.Fixed();
}

}  // namespace swizzle
