#include "model_loader/fallback/batch_rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "model_loader/graph/operator_table.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/equation.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle::fallback {
namespace {

using Result = std::optional<Extents>;

// A scale or zero point of com.microsoft, one number of any rank, which doesn't broadcast.
bool IsScale(const NodeFacts& node, size_t input) {
  return node.node().op.starts_with("QLinear") && input != 0 && input != 3;
}

// PRelu's, as large as its first input. Slopes in a list may be channels', of dimension 1, before opset 9.
Result Sloped(const NodeFacts& node) {
  const Extents& x = *node.ShapeOf(0);
  const bool of_channels = node.opset() < 9 && x.size() > 2 && node.ShapeOf(1)->size() == 1;
  return of_channels && BatchAxis(x) > 0 ? std::nullopt : Result(x);
}

// Broadcasting aligns dimensions at their end: rows stay apart where those that have rows have them there, and nothing
// else has as many elements.
Result Elementwise(const NodeFacts& node) {
  if (node.opset() < 7 && node.node().attributes.contains("axis")) return std::nullopt;
  Result result = Extents();
  for (size_t i = 0; i < node.size(); ++i) {
    if (!node.Has(i)) continue;
    if (IsScale(node, i)) {
      if (!node.In(i).IsShared()) return std::nullopt;
      continue;
    }
    const Extents* const shape = node.ShapeOf(i);
    result = shape == nullptr ? std::nullopt : Broadcast(*result, *shape);
    if (!result) return std::nullopt;
  }
  return node.node().op == "PRelu" && node.Has(0) && node.Has(1) ? Sloped(node) : result;
}

Extent Windowed(const NodeFacts& node, const Extent& size, const std::array<int64_t, 5>& window, AutoPad mode) {
  const auto [kernel, stride, dilation, before, after] = window;
  const bool is_large = std::ranges::any_of(
      window, [](int64_t number) { return number > kMaxWindowExtent || number < -kMaxWindowExtent; });
  WindowAxis axis = {size.number, kernel, stride, dilation, before, after};
  const auto cuts = node.Int("ceil_mode", 0);
  if (!size.IsNumber() || size.number > (int64_t{1} << 30) || is_large || !axis.InRange() || !cuts) return {};
  if (mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower) axis.PadToSame(mode);
  return Extent::Of(axis.Output() + (*cuts != 0 && axis.HasCutWindow() ? 1 : 0));
}

// Of convolutions and pools over planes of any rank: how large the planes are, where that is known.
void SetPlanes(const NodeFacts& node, const Extents& x, Extents& result) {
  const size_t rank = x.size() - 2;
  const Extents* const weight = node.node().op == "Conv" ? node.ShapeOf(1) : nullptr;
  Shape kernel;
  for (size_t d = 0; weight != nullptr && weight->size() == x.size() && d < rank; ++d) {
    kernel.push_back((*weight)[d + 2].number);
  }
  const auto lists = [&](const char* name, std::vector<int64_t> absent) {
    return IntsAttribute(node.node(), name, std::move(absent)).value_or(std::vector<int64_t>());
  };
  kernel = lists("kernel_shape", kernel);
  const auto strides = lists("strides", Shape(rank, 1)), dilations = lists("dilations", Shape(rank, 1));
  const auto pads = lists("pads", Shape(2 * rank, 0));
  const StatusOr<AutoPad> mode = AutoPadOf(node.node());
  const bool right = kernel.size() == rank && strides.size() == rank && dilations.size() == rank;
  if (!right || pads.size() != 2 * rank || !mode.ok()) return;
  for (size_t d = 0; d < rank; ++d) {
    const bool valid = *mode != AutoPad::kExplicit;
    const std::array<int64_t, 5> window = {kernel[d], strides[d], dilations[d], valid ? 0 : pads[d],
                                           valid ? 0 : pads[d + rank]};
    if (kernel[d] >= 1 && strides[d] >= 1 && dilations[d] >= 1) result[d + 2] = Windowed(node, x[d + 2], window, *mode);
  }
}

// Of an operator that makes row i, of dimension 0, of row i of input 0.
Result OfFirstInput(const NodeFacts& node, size_t output) {
  const Extents* const x = node.ShapeOf(0);
  const std::string& op = node.node().op;
  if (x == nullptr || !node.AreShared(1)) return std::nullopt;
  if (GoByBatch(*x) && (BatchAxis(*x) != 0 || (output != 0 && op == "MaxPool"))) {
    return std::nullopt;  // MaxPool's indices count from the start of the batch
  }
  if (output > 0 && op != "MaxPool" && op != "Dropout") return std::nullopt;
  if (FactsOf(node.node().domain, op).KeepsShape()) return *x;
  Extents result(x->size());
  if (result.empty()) return result;
  result[0] = x->front();
  const bool pools = op == "MaxPool" || op == "AveragePool";
  const bool pools_all = op == "GlobalAveragePool" || op == "GlobalMaxPool";
  if (x->size() < 3) return result;
  if (pools || pools_all) result[1] = (*x)[1];
  if (op == "Conv" && node.ShapeOf(1) != nullptr && !node.ShapeOf(1)->empty()) result[1] = node.ShapeOf(1)->front();
  if (pools_all) std::fill(result.begin() + 2, result.end(), Extent::Of(1));
  if (pools || op == "Conv") SetPlanes(node, *x, result);
  return result;
}

// Softmax or one of its kin, of an opset in which they work on all dimensions from their axis on.
bool IsOldSoftmax(const NodeFacts& node) {
  const std::string& op = node.node().op;
  return node.opset() < 13 && (op.ends_with("oftmax") || op == "Hardmax");
}

// Whether the node works on all dimensions from its axis on.
bool FromAxisOn(const NodeFacts& node) {
  const std::string& op = node.node().op;
  return op.ends_with("LayerNormalization") || op == "RMSNormalization" || IsOldSoftmax(node);
}

// A node's axis where it has no attribute.
int64_t AbsentAxis(const NodeFacts& node) {
  const std::string& op = node.node().op;
  if (op == "ArgMax" || op == "ArgMin" || op == "Split") return 0;
  return op.ends_with("uantizeLinear") || IsOldSoftmax(node) ? 1 : -1;
}

// Whether the input is left out or has one element.
bool IsOneIfAny(const NodeFacts& node, size_t input) {
  const Extents* const shape = node.ShapeOf(input);
  return !node.Has(input) || (shape != nullptr && CountOf(*shape, 0, shape->size()) == 1);
}

Result Reduced(const NodeFacts& node, const Extents& x, const std::vector<int64_t>& axes, bool keep) {
  Extents result = x;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const auto at = result.begin() + *axis;
    if (at->of_batch) return std::nullopt;
    if (keep) {
      *at = Extent::Of(1);
    } else {
      result.erase(at);
    }
  }
  return axes.empty() || !node.AreShared(1) ? std::nullopt : Result(result);
}

// One of Split's outputs.
Extent PartOf(const NodeFacts& node, const Extent& whole, size_t output) {
  auto lengths = node.Numbers(1);
  if (!node.Has(1)) lengths = IntsAttribute(node.node(), "split", {}).value_or(std::vector<int64_t>());
  if (!lengths) return {};
  if (!lengths->empty()) return output < lengths->size() ? Extent::Of((*lengths)[output]) : Extent();
  if (!whole.IsNumber()) return {};
  const auto parts = PartLengths({}, whole.number, static_cast<int64_t>(node.node().outputs.size()));
  return parts.ok() && output < parts->size() ? Extent::Of((*parts)[output]) : Extent();
}

// Of one that works along axes, none of which may be the rows'.
Result AlongAxis(const NodeFacts& node, size_t output) {
  const Extents* const x = node.ShapeOf(0);
  const std::string& op = node.node().op;
  const StatusOr<bool> keep = KeepsAxes(node.node());
  if (x == nullptr || !node.AreShared(1) || !keep.ok()) return std::nullopt;
  const auto rank = static_cast<int64_t>(x->size());
  if (op.starts_with("Reduce")) {
    const auto axes = node.Axes(1, rank);
    return axes ? Reduced(node, *x, *axes, *keep) : std::nullopt;
  }
  const bool finds = op == "ArgMax" || op == "ArgMin";
  if (output > 0 && op != "Split" && op != "TopK") return std::nullopt;  // statistics of a norm
  const bool quantises = op.ends_with("uantizeLinear");
  if (quantises && IsOneIfAny(node, 1) && IsOneIfAny(node, 2)) return *x;
  auto axis = node.Axis(AbsentAxis(node), rank);
  if (op == "CumSum") {
    const auto given = node.Numbers(1);
    axis = given && given->size() == 1 ? std::optional(given->front()) : std::nullopt;
    if (axis && *axis < 0) *axis += rank;
  }
  if (op == "Trilu") axis = rank - 2;
  if (!axis || *axis < 0 || *axis >= rank) return std::nullopt;
  const int64_t rows = BatchAxis(*x);
  if (rows >= 0 && (*axis == rows || ((FromAxisOn(node) || op == "Trilu") && *axis < rows))) return std::nullopt;
  if (finds) return Reduced(node, *x, {*axis}, *keep);
  Extents result = *x;
  if (op == "Split") result[static_cast<size_t>(*axis)] = PartOf(node, result[static_cast<size_t>(*axis)], output);
  if (op == "TopK") result[static_cast<size_t>(*axis)] = Extent();
  return result;
}

// Of matrices and of stacks of them: rows are matrices, or rows of the first or columns of the second.
Result Product(const NodeFacts& node) {
  const Extents* const a = node.ShapeOf(0);
  const Extents* const b = node.ShapeOf(1);
  if (a == nullptr || b == nullptr || a->size() < 2 || b->size() < 2 || !node.AreShared(2)) return std::nullopt;
  if (a->back().of_batch || b->at(b->size() - 2).of_batch) return std::nullopt;
  auto result = Broadcast(Extents(a->begin(), a->end() - 2), Extents(b->begin(), b->end() - 2));
  if (!result) return std::nullopt;
  result->push_back(a->at(a->size() - 2));
  result->push_back(b->back());
  return GoesByBatchOnceAtMost(*result) ? result : std::nullopt;
}

Result Gemm(const NodeFacts& node) {
  const auto turns_a = node.Int("transA", 0), turns_b = node.Int("transB", 0);
  const Extents* const a = node.ShapeOf(0);
  const Extents* const b = node.ShapeOf(1);
  if (!turns_a || !turns_b || a == nullptr || a->size() != 2 || !node.AreShared(1)) return std::nullopt;
  if (GoByBatch(*a) && (*turns_a != 0 || !a->front().of_batch)) return std::nullopt;
  const bool matrix = b != nullptr && b->size() == 2;
  Extents result = {(*a)[*turns_a != 0 ? 1 : 0], matrix ? (*b)[*turns_b != 0 ? 0 : 1] : Extent()};
  if (!node.Has(2)) return result;
  return node.ShapeOf(2) == nullptr || !Broadcast(result, *node.ShapeOf(2)) ? std::nullopt : Result(result);
}

// Row i of dimension 0 of row i of each.
Result OfAllInputs(const NodeFacts& node) {
  const Extents* const x = node.ShapeOf(0);
  for (size_t i = 0; i < node.size(); ++i) {
    if (node.ShapeOf(i) == nullptr || BatchAxis(*node.ShapeOf(i)) != 0) return std::nullopt;
  }
  Extents result(x->size());
  result[0] = x->front();
  return result;
}

// The batch has a label of its own, in all operands that have rows, once, and in the result.
Result OfEquation(const NodeFacts& node) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < node.size(); ++i) {
    if (node.ShapeOf(i) == nullptr) return std::nullopt;
    ranks.push_back(static_cast<int64_t>(node.ShapeOf(i)->size()));
  }
  const StatusOr<std::string> text = StringAttribute(node.node(), "equation", "");
  const StatusOr<Equation> equation = text.ok() ? ReadEquation(*text, ranks) : text.status();
  if (!equation.ok()) return std::nullopt;
  std::optional<int> batch;
  Extent rows;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!node.In(i).HasRows()) continue;
    const auto axis = static_cast<size_t>(BatchAxis(*node.ShapeOf(i)));
    const int label = equation->operands[i][axis];
    if (batch && (label != *batch || !(*node.ShapeOf(i))[axis].Equals(rows))) return std::nullopt;
    batch = label, rows = (*node.ShapeOf(i))[axis];
  }
  Extents result(equation->result.size());
  if (!batch) return result;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t wanted = node.In(i).HasRows() ? 1 : 0;
    if (std::ranges::count(equation->operands[i], *batch) != wanted) return std::nullopt;
  }
  const auto place = std::ranges::find(equation->result, *batch);
  if (place == equation->result.end()) return std::nullopt;
  result[static_cast<size_t>(place - equation->result.begin())] = rows;
  return result;
}

// Inputs and first states have rows along one dimension, weights none; lengths of sequences are one a row.
Result Recurrent(const NodeFacts& node, size_t output) {
  const auto layout = node.Int("layout", 0);
  if (!layout || node.ShapeOf(0) == nullptr || !node.In(0).HasRows()) return std::nullopt;
  const int64_t axis = *layout == 0 ? 1 : 0;
  const Extent rows = node.ShapeOf(0)->at(static_cast<size_t>(BatchAxis(*node.ShapeOf(0))));
  for (size_t i = 0; i < node.size(); ++i) {
    const BatchFact& fact = node.In(i);
    const bool has_rows = i == 0 || i == 4 || i == 5 || (node.node().op == "LSTM" && i == 6);
    if (!node.Has(i)) continue;
    if (!has_rows && !fact.IsShared()) return std::nullopt;
    const auto place = static_cast<size_t>(i == 4 ? 0 : axis);
    if (has_rows && (!fact.shape || fact.shape->size() <= place || !(*fact.shape)[place].Equals(rows)))
      return std::nullopt;
  }
  Extents result(output == 0 ? 4 : 3);
  result[static_cast<size_t>(output == 0 && *layout == 0 ? 2 : axis)] = rows;
  return result;
}

// Of those that change a part of their first input, but for Range.
Result OfShared(const NodeFacts& node) {
  if (!node.AreShared(0)) return std::nullopt;
  if (node.node().op == "Range") return Extents(1);
  return node.ShapeOf(0) == nullptr ? std::nullopt : Result(*node.ShapeOf(0));
}

}  // namespace

Result ResultShape(const NodeFacts& node, RowRule rule, size_t output) {
  switch (rule) {
    case RowRule::kElementwise:
      return Elementwise(node);
    case RowRule::kFirstInput:
      return OfFirstInput(node, output);
    case RowRule::kAxis:
      return AlongAxis(node, output);
    case RowRule::kProduct:
      return node.node().op == "Gemm" ? Gemm(node) : Product(node);
    case RowRule::kMoved:
      return MovedShape(node);
    case RowRule::kAllInputs:
      return OfAllInputs(node);
    case RowRule::kEquation:
      return OfEquation(node);
    case RowRule::kRecurrent:
      return Recurrent(node, output);
    case RowRule::kShared:
      return OfShared(node);
    case RowRule::kUnknown:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace swizzle::fallback
