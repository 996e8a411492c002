#include "model_loader/expansions/value_facts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "model_loader/graph/operator_table.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/given_axes.h"

namespace swizzle::expansions {
namespace {

constexpr int64_t kUnknown = -1;

template <size_t kSize>
bool IsOneOf(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Results are as large as the first input.
constexpr std::array<std::string_view, 16> kAsFirst = {"BatchNormalization",
                                                       "Clip",
                                                       "CumSum",
                                                       "DequantizeLinear",
                                                       "Dropout",
                                                       "GroupNormalization",
                                                       "Hardmax",
                                                       "LayerNormalization",
                                                       "LogSoftmax",
                                                       "LpNormalization",
                                                       "InstanceNormalization",
                                                       "QuantizeLinear",
                                                       "RMSNormalization",
                                                       "SimplifiedLayerNormalization",
                                                       "Softmax",
                                                       "Trilu"};
constexpr std::array<std::string_view, 11> kComparing = {
    "IsInf", "Xor", "And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or", "IsNaN"};
constexpr std::array<std::string_view, 5> kWhole = {"ArgMax", "ArgMin", "NonZero", "Shape", "Size"};

std::optional<Shape> Unknowns(size_t rank) { return Shape(rank, kUnknown); }

int64_t BroadcastDimension(int64_t a, int64_t b) {
  if (a == b || b == 1) return a;
  if (a == 1) return b;
  return std::max(a, b);  // one of them is known, or none
}

std::optional<Shape> BroadcastOf(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a || !b) return std::nullopt;
  Shape shape(std::max(a->size(), b->size()));
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t of_a = i < a->size() ? (*a)[a->size() - 1 - i] : 1,
                  of_b = i < b->size() ? (*b)[b->size() - 1 - i] : 1;
    shape[shape.size() - 1 - i] = BroadcastDimension(of_a, of_b);
  }
  return shape;
}

// Recognisers take these operators of com.microsoft as they are: they stand between those that are written out.
std::optional<Shape> OfMicrosoft(const Node& node, const ValueFacts& facts) {
  constexpr size_t kTable = 2;
  const std::string& op = node.op;
  std::optional<Shape> shape = facts.Of(node.Input(0)).shape;
  if (!shape) return std::nullopt;
  if (op.ends_with("Gelu") || op.starts_with("Skip")) return shape;
  if (op == "EmbedLayerNormalization" || op == "QEmbedLayerNormalization") {
    const std::optional<Shape> table = facts.Of(node.Input(kTable)).shape;
    shape->push_back(table && table->size() == 2 ? (*table)[1] : kUnknown);
    return shape;
  }
  const bool is_product = op.find("MatMul") != std::string::npos || op == "Attention" || op == "QAttention";
  return is_product ? Unknowns(shape->size()) : std::nullopt;
}

}  // namespace

ValueFact ValueFacts::Of(int value) const {
  if (value == kNoValue) return {};
  const Value& given = graph_.values[static_cast<size_t>(value)];
  const bool is_input = std::ranges::find(graph_.inputs, value) != graph_.inputs.end();
  if (given.constant) return {given.dtype, given.shape};
  if (is_input && given.shape) return {given.dtype, given.shape};
  if (const auto found = made_.find(value); found != made_.end()) return found->second;
  return {};
}

const Tensor* ValueFacts::ConstantOf(int value) const {
  if (value == kNoValue) return nullptr;
  const Value& given = graph_.values[static_cast<size_t>(value)];
  if (given.constant) return &*given.constant;
  const auto found = constants_.find(value);
  return found != constants_.end() ? &found->second : nullptr;
}

std::optional<std::vector<int64_t>> ValueFacts::WholesOf(int value) const {
  const Tensor* const tensor = ConstantOf(value);
  if (tensor == nullptr || tensor->dtype != DType::kInt64) return std::nullopt;
  std::vector<int64_t> wholes(static_cast<size_t>(tensor->elements()));
  if (!wholes.empty()) std::memcpy(wholes.data(), tensor->bytes.data(), tensor->bytes.size());
  return wholes;
}

void ValueFacts::Note(const Node& node) {
  if (node.op == "Constant") {
    const auto value = node.attributes.find("value");
    const Tensor* const tensor = value != node.attributes.end() ? std::get_if<Tensor>(&value->second) : nullptr;
    if (tensor != nullptr) constants_.emplace(node.outputs[0], *tensor);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    ValueFact fact;
    const auto hint = hints_.find(graph_.values[static_cast<size_t>(node.outputs[i])].name);
    if (hint != hints_.end()) fact = hint->second;
    if (i == 0 || node.op == "Split") {
      if (const auto shape = ShapeOfResult(node)) fact.shape = shape;
      if (const auto dtype = TypeOfResult(node)) fact.dtype = dtype;
    }
    made_[node.outputs[i]] = std::move(fact);
  }
}

std::optional<DType> ValueFacts::TypeOfResult(const Node& node) const {
  if (node.op == "Cast") {
    const StatusOr<DType> type = CastType(node);
    return type.ok() ? std::optional(*type) : std::nullopt;
  }
  if (IsOneOf(kComparing, node.op)) return DType::kBool;
  if (IsOneOf(kWhole, node.op)) return DType::kInt64;
  if (node.op == "ConstantOfShape") return std::nullopt;
  if (node.op == "Constant") {
    const Tensor* const tensor = ConstantOf(node.outputs[0]);
    return tensor != nullptr ? std::optional(tensor->dtype) : std::nullopt;
  }
  if (node.op == "MatMulInteger" || node.op == "ConvInteger") return DType::kInt32;
  if (node.op == "DequantizeLinear") return Of(node.Input(1)).dtype;
  if (node.op == "QuantizeLinear") return node.Input(2) == kNoValue ? DType::kUint8 : Of(node.Input(2)).dtype;
  if (node.op == "DynamicQuantizeLinear") return DType::kUint8;
  if (node.op == "Where") return Of(node.Input(1)).dtype;
  if (node.op == "CastLike") return Of(node.Input(1)).dtype;
  if (!node.domain.empty() || node.inputs.empty()) return std::nullopt;
  const OnnxOperator* const row = FindOnnxOperator(node.domain, node.op);
  const RowRule rows = row != nullptr ? row->fallback.rows : RowRule::kUnknown;
  const auto first = Of(node.Input(0)).dtype;
  if (rows == RowRule::kElementwise || rows == RowRule::kProduct) return first ? first : Of(node.Input(1)).dtype;
  return rows == RowRule::kMoved || (first && IsFloating(*first)) ? first : std::nullopt;
}

std::optional<Shape> ValueFacts::ShapeOfResult(const Node& node) const {
  if (node.domain == "com.microsoft") return OfMicrosoft(node, *this);
  if (!node.domain.empty()) return std::nullopt;
  if (node.op == "Range") return Unknowns(1);
  const std::string& op = node.op;
  if (op == "Constant") {
    const Tensor* const tensor = ConstantOf(node.outputs[0]);
    return tensor != nullptr ? std::optional(tensor->shape) : std::nullopt;
  }
  const std::optional<Shape> first = Of(node.Input(0)).shape;
  if (op == "Shape") return first ? std::optional(Shape{static_cast<int64_t>(first->size())}) : std::nullopt;
  if (op == "ConstantOfShape" || op == "Expand") {
    const int sizes = node.Input(op == "Expand" ? 1 : 0);
    if (const auto wholes = WholesOf(sizes); wholes && op == "ConstantOfShape") return Shape(*wholes);
    const std::optional<Shape> list = Of(sizes).shape;
    if (!list || list->size() != 1 || (*list)[0] < 0) return std::nullopt;
    if (op == "Expand" && first && first->size() > static_cast<size_t>((*list)[0])) return Unknowns(first->size());
    return Unknowns(static_cast<size_t>((*list)[0]));
  }
  if (op == "Einsum" || op == "If" || op == "Loop" || op == "Scan") return std::nullopt;
  if (IsOneOf(kAsFirst, op)) return first;
  const OnnxOperator* const row = FindOnnxOperator(node.domain, op);
  if (row != nullptr && row->fallback.rows == RowRule::kElementwise) return Broadcast(node);
  if (op == "MatMul" || op == "Gemm" || op == "MatMulInteger") return Product(node);
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze") return Reshaped(node);
  if (op == "Transpose" || op == "Slice" || op == "Gather" || op == "Pad" || op == "Tile") return Moved(node);
  if (op.starts_with("Reduce")) return Reduced(node);
  if (op == "Concat" || op == "Split") return Joined(node);
  return OfImages(node);
}

std::optional<Shape> ValueFacts::Broadcast(const Node& node) const {
  std::optional<Shape> shape = Of(node.Input(0)).shape;
  for (size_t i = 1; i < node.inputs.size(); ++i) shape = BroadcastOf(shape, Of(node.inputs[i]).shape);
  return shape;
}

std::optional<Shape> ValueFacts::Product(const Node& node) const {
  std::optional<Shape> a = Of(node.Input(0)).shape, b = Of(node.Input(1)).shape;
  if (node.op == "Gemm") {
    const auto turns_a = IntAttribute(node, "transA", 0), turns_b = IntAttribute(node, "transB", 0);
    if (!turns_a.ok() || !turns_b.ok()) return std::nullopt;
    Shape shape = {kUnknown, kUnknown};
    if (a && a->size() == 2) shape[0] = (*a)[*turns_a != 0 ? 1 : 0];
    if (b && b->size() == 2) shape[1] = (*b)[*turns_b != 0 ? 0 : 1];
    return shape;
  }
  if (!a || !b || a->size() < 2 || b->size() < 2) return std::nullopt;
  const int64_t rows = (*a)[a->size() - 2], columns = b->back();
  a->resize(a->size() - 2);
  b->resize(b->size() - 2);
  std::optional<Shape> shape = BroadcastOf(a, b);
  shape->insert(shape->end(), {rows, columns});
  return shape;
}

std::optional<std::vector<int64_t>> ValueFacts::AxesOf(const Node& node, size_t rank) const {
  const auto axes = GivenAxes(node, node.Input(1) != kNoValue, [&]() -> StatusOr<std::vector<int64_t>> {
    if (auto wholes = WholesOf(node.Input(1))) return *std::move(wholes);
    return InvalidArgument("they are not known");
  });
  if (!axes.ok() || !*axes) return std::nullopt;
  auto normal = NormalAxes(**axes, static_cast<int64_t>(rank));
  return normal.ok() ? std::optional(*std::move(normal)) : std::nullopt;
}

std::optional<Shape> ValueFacts::Reshaped(const Node& node) const {
  const std::optional<Shape> x = Of(node.Input(0)).shape;
  if (node.op == "Flatten") return Unknowns(2);
  if (node.op == "Reshape") {
    const std::optional<Shape> list = Of(node.Input(1)).shape;
    const auto sizes = WholesOf(node.Input(1));
    if (!sizes)
      return list && list->size() == 1 && (*list)[0] >= 0 ? Unknowns(static_cast<size_t>((*list)[0])) : std::nullopt;
    Shape shape = *sizes;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0) shape[i] = x && i < x->size() ? (*x)[i] : kUnknown;
    }
    return shape;
  }
  if (!x) return std::nullopt;
  Shape shape = *x;
  if (node.op == "Squeeze") {
    const auto axes = AxesOf(node, shape.size());
    if (!axes) return std::nullopt;
    for (size_t i = axes->size(); i-- > 0;) shape.erase(shape.begin() + static_cast<ptrdiff_t>((*axes)[i]));
    return shape;
  }
  const auto count = [&]() -> std::optional<size_t> {
    const auto given = GivenAxes(node, node.Input(1) != kNoValue, [&]() -> StatusOr<std::vector<int64_t>> {
      if (auto wholes = WholesOf(node.Input(1))) return *std::move(wholes);
      return InvalidArgument("they are not known");
    });
    return given.ok() && *given ? std::optional((*given)->size()) : std::nullopt;
  }();
  const auto axes = count ? AxesOf(node, shape.size() + *count) : std::nullopt;
  if (!axes) return std::nullopt;
  for (const int64_t axis : *axes) shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), 1);
  return shape;
}

std::optional<Shape> ValueFacts::Moved(const Node& node) const {
  const std::optional<Shape> x = Of(node.Input(0)).shape;
  if (node.op == "Transpose") {
    const auto perm = IntsAttribute(node, "perm", {});
    if (!x) return perm.ok() && !perm->empty() ? Unknowns(perm->size()) : std::nullopt;
    const auto order = PermutationOf(node, x->size());
    if (!order.ok()) return std::nullopt;
    Shape shape;
    for (const int64_t axis : *order) shape.push_back((*x)[static_cast<size_t>(axis)]);
    return shape;
  }
  if (!x) return std::nullopt;
  if (node.op == "Gather") {
    const std::optional<Shape> indices = Of(node.Input(1)).shape;
    const auto given = IntAttribute(node, "axis", 0);
    const auto axis = given.ok() ? NormalAxis(*given, static_cast<int64_t>(x->size())) : given;
    if (!indices || !axis.ok()) return std::nullopt;
    Shape shape = *x;
    shape.erase(shape.begin() + *axis);
    shape.insert(shape.begin() + *axis, indices->begin(), indices->end());
    return shape;
  }
  Shape shape = *x;
  const auto axes = node.op == "Slice" ? WholesOf(node.Input(3)) : std::nullopt;
  const auto normal = axes ? NormalAxes(*axes, static_cast<int64_t>(shape.size())) : StatusOr<std::vector<int64_t>>(*x);
  if (!axes || !normal.ok()) return Unknowns(shape.size());
  for (const int64_t axis : *normal) shape[static_cast<size_t>(axis)] = kUnknown;
  return shape;
}

std::optional<Shape> ValueFacts::Reduced(const Node& node) const {
  const std::optional<Shape> x = Of(node.Input(0)).shape;
  const auto keeps = KeepsAxes(node);
  if (!x || !keeps.ok()) return std::nullopt;
  const auto axes = AxesOf(node, x->size());
  if (!axes) return *keeps ? Unknowns(x->size()) : std::nullopt;
  Shape shape = *x;
  for (size_t i = axes->size(); i-- > 0;) {
    const auto at = shape.begin() + static_cast<ptrdiff_t>((*axes)[i]);
    if (*keeps) {
      *at = 1;
    } else {
      shape.erase(at);
    }
  }
  return shape;
}

std::optional<Shape> ValueFacts::Joined(const Node& node) const {
  std::optional<Shape> shape = Of(node.Input(0)).shape;
  const auto given = IntAttribute(node, "axis", 0);
  if (!shape || !given.ok()) return std::nullopt;
  const auto axis = NormalAxis(*given, static_cast<int64_t>(shape->size()));
  if (!axis.ok()) return std::nullopt;
  int64_t& joined = (*shape)[static_cast<size_t>(*axis)];
  if (node.op == "Split") {
    const auto parts = static_cast<int64_t>(node.outputs.size());
    const bool is_even = node.Input(1) == kNoValue && !node.attributes.contains("split");
    joined = is_even && joined >= 0 && joined % parts == 0 ? joined / parts : kUnknown;
    return shape;
  }
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const std::optional<Shape> other = Of(node.inputs[i]).shape;
    const bool known =
        joined >= 0 && other && other->size() == shape->size() && (*other)[static_cast<size_t>(*axis)] >= 0;
    joined = known ? joined + (*other)[static_cast<size_t>(*axis)] : kUnknown;
  }
  return shape;
}

std::optional<Shape> ValueFacts::OfImages(const Node& node) const {
  const std::optional<Shape> x = Of(node.Input(0)).shape;
  const bool is_conv = node.op == "Conv" || node.op == "ConvTranspose";
  const bool is_pool = node.op.ends_with("Pool");
  if (node.op == "LSTM" || node.op == "GRU" || node.op == "RNN") return Unknowns(4);
  if (!x || x->size() < 2) return std::nullopt;
  if (node.op == "Resize" || node.op == "Upsample" || node.op == "DepthToSpace" || node.op == "SpaceToDepth") {
    return Unknowns(x->size());
  }
  if (!is_conv && !is_pool) return std::nullopt;
  Shape shape = *x;
  std::fill(shape.begin() + 2, shape.end(), node.op.starts_with("Global") ? 1 : kUnknown);
  if (!is_conv) return shape;
  const std::optional<Shape> weight = Of(node.Input(1)).shape;
  shape[1] = weight && !weight->empty() && node.op == "Conv" ? (*weight)[0] : kUnknown;
  return shape;
}

}  // namespace swizzle::expansions
