// Elements that a graph computes of sizes, as exporters write it before Reshape, Expand and Slice. Operators that only
// move elements are left to semantics/evaluate.h, which is given numbers that stand for them.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/evaluate.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/strides.h"
#include "model_loader/shapes/symbolic_walk.h"

namespace swizzle {
namespace {

using ElementsResult = std::optional<SymbolicElements>;

constexpr std::string_view kElementMoves[] = {"Concat", "Gather",  "Identity",  "Reshape",
                                              "Slice",  "Squeeze", "Transpose", "Unsqueeze"};
constexpr std::string_view kCombine[] = {"Add", "Div", "Equal", "Greater", "Less", "Max",
                                         "Min", "Mod", "Mul",   "Sub",     "Where"};

// Shape's, from its attributes start and end.
ElementsResult SizesOf(const SymbolicNode& node) {
  const SymbolicShape* const shape = node.ShapeOf(0);
  if (shape == nullptr) return std::nullopt;
  const std::optional<SliceRange> range = ShapeRange(node, static_cast<int64_t>(shape->size()));
  if (!range) return std::nullopt;
  const auto first = shape->begin() + range->start;
  return SymbolicElements{{range->count}, {first, first + range->count}};
}

// The elements of inputs that are moved, joined in `pool`, have their places there as numbers.
ElementsResult Moved(const SymbolicNode& node) {
  const bool joins = node.node().op == "Concat";
  if (node.node().op == "Identity") return node.In(0).elements;
  std::vector<SymbolicInt> pool;
  std::vector<Elements> inputs(node.size());
  std::vector<const Elements*> given(node.size());
  for (size_t i = 0; i < node.size(); ++i) {
    if (!node.Has(i)) continue;
    const auto& elements = node.In(i).elements;
    if (!elements) return std::nullopt;
    inputs[i] = {DType::kInt64, elements->shape, {}};
    for (const SymbolicInt& element : elements->values) {
      const bool moves = joins || i == 0;
      const auto number = moves ? static_cast<int64_t>(pool.size()) : element.Number();
      if (!number) return std::nullopt;
      inputs[i].scalars.push_back({0.0, *number, false});
      if (moves) pool.push_back(element);
    }
    given[i] = &inputs[i];
  }
  const auto moved = Evaluate(node.node(), given);
  if (!moved.ok() || !*moved || static_cast<int64_t>((*moved)->scalars.size()) > kMostSymbolicElements)
    return std::nullopt;
  SymbolicElements made{(*moved)->shape, {}};
  for (const Scalar& scalar : (*moved)->scalars) made.values.push_back(pool[static_cast<size_t>(scalar.whole)]);
  return made;
}

// Whether the number is what 32 bits hold of it, where it has so many. Sizes fit into them, and so do a few thousand
// times a size: elements of more could not be held. Of what is larger nothing is said.
bool Fits(const SymbolicInt& value, std::optional<DType> dtype) {
  constexpr int64_t kMostTimes = 1 << 16;
  if (dtype == DType::kInt64) return true;
  const auto number = value.Number();
  return number ? *number == Wrapped(*number, DType::kInt32) : value.LargestFactor() <= kMostTimes;
}

ElementsResult Casted(const SymbolicNode& node, const Symbols& symbols) {
  const StatusOr<DType> to = CastType(node.node());
  const auto& elements = node.In(0).elements;
  if (!elements || !to.ok() || (*to != DType::kInt64 && *to != DType::kInt32)) return std::nullopt;
  const bool cuts = *to == DType::kInt32 && node.In(0).dtype == DType::kInt64;
  const bool fit = std::ranges::all_of(elements->values, [&](const SymbolicInt& value) {
    return Fits(value, *to) && !(cuts && symbols.MayWrap(value));
  });
  return fit ? elements : std::nullopt;
}

std::optional<SymbolicInt> Compared(const SymbolicInt& a, const SymbolicInt& b, const Symbols& symbols) {
  if (a == b) return 1;
  const auto left = a.Number(), right = b.Number();
  if (left && right) return 0;
  const bool apart =
      (left && *left < 0 && symbols.IsNotNegative(b)) || (right && *right < 0 && symbols.IsNotNegative(a));
  return apart ? std::optional(SymbolicInt(0)) : std::nullopt;
}

// Min and its kin are known of numbers alone.
std::optional<SymbolicInt> OfNumbers(std::string_view op, const SymbolicInt& a, const SymbolicInt& b) {
  const auto left = a.Number(), right = b.Number();
  if (!left || !right) return std::nullopt;
  if (op == "Less") return *left < *right ? 1 : 0;
  if (op == "Greater") return *left > *right ? 1 : 0;
  if (op == "Min") return std::min(*left, *right);
  if (op == "Max") return std::max(*left, *right);
  if (*left < 0 || *right <= 0) return std::nullopt;  // of those below 0 the sign depends on an attribute
  return *left % *right;
}

std::optional<SymbolicInt> Computed(std::string_view op, std::span<const SymbolicInt> of, Symbols& symbols) {
  if (op == "Where") {
    const auto condition = of[0].Number();
    if (!condition) return of[1] == of[2] ? std::optional(of[1]) : std::nullopt;
    return of[*condition != 0 ? 1 : 2];
  }
  if (std::ranges::any_of(of, [&](const SymbolicInt& each) { return symbols.MayWrap(each); })) {
    return op == "Mod" ? std::nullopt : std::optional(symbols.Number(op, of));  // Mod goes by an attribute, too
  }
  if (op == "Add") return symbols.Sum(of[0], of[1]);
  if (op == "Sub") return symbols.Difference(of[0], of[1]);
  if (op == "Mul") return symbols.Product(of[0], of[1]);
  if (op == "Div") return symbols.Quotient(of[0], of[1]);
  if (op == "Equal") return Compared(of[0], of[1], symbols);
  return of.size() == 2 ? OfNumbers(op, of[0], of[1]) : std::nullopt;
}

// The operators compute each element by itself.
ElementsResult Combined(const SymbolicNode& node, Symbols& symbols) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < node.size(); ++i) {
    if (!node.In(i).elements) return std::nullopt;
    shapes.push_back(node.In(i).elements->shape);
  }
  const StatusOr<Shape> shape = BroadcastShape(shapes);
  if (!shape.ok() || shape->size() > 1) return std::nullopt;
  SymbolicElements made{*shape, {}};
  const int64_t count = shape->empty() ? 1 : shape->front();
  for (int64_t at = 0; at < count && count <= kMostSymbolicElements; ++at) {
    std::vector<SymbolicInt> of;
    for (size_t i = 0; i < node.size(); ++i) {
      const std::vector<SymbolicInt>& values = node.In(i).elements->values;
      of.push_back(values[values.size() == 1 ? 0 : static_cast<size_t>(at)]);
    }
    const auto result = Computed(node.node().op, of, symbols);
    if (!result || !Fits(*result, node.In(node.size() - 1).dtype)) return std::nullopt;
    made.values.push_back(*result);
  }
  return made;
}

// ConstantOfShape, of a list's length, and Expand to one.
ElementsResult Filled(const SymbolicNode& node) {
  const bool expands = node.node().op == "Expand";
  const auto counts = node.Numbers(expands ? 1 : 0);
  if (!counts || counts->size() != 1 || counts->front() < 0 || counts->front() > kMostSymbolicElements)
    return std::nullopt;
  SymbolicInt value = 0;
  const auto attribute = node.node().attributes.find("value");
  if (expands) {
    const auto list = node.List(0);
    if (!list || list->size() != 1) return std::nullopt;
    value = list->front();
  } else if (attribute != node.node().attributes.end()) {
    const auto* const tensor = std::get_if<Tensor>(&attribute->second);
    const auto elements = tensor == nullptr || IsFloating(tensor->dtype) ? std::nullopt : Elements::FromTensor(*tensor);
    if (!elements || elements->scalars.size() != 1) return std::nullopt;
    value = elements->scalars.front().whole;
  } else {
    return std::nullopt;  // real numbers
  }
  return SymbolicElements{*counts, std::vector<SymbolicInt>(static_cast<size_t>(counts->front()), value)};
}

ElementsResult Multiplied(const SymbolicNode& node, Symbols& symbols) {
  const auto list = node.List(0);
  if (!list || node.HasAxes(1)) return std::nullopt;
  const StatusOr<bool> keeps = KeepsAxes(node.node());
  const bool may_wrap = std::ranges::any_of(*list, [&](const SymbolicInt& each) { return symbols.MayWrap(each); });
  if (!keeps.ok() || may_wrap || node.In(0).elements->shape.size() != 1) return std::nullopt;
  return SymbolicElements{*keeps ? Shape{1} : Shape{}, {symbols.Product(*list)}};
}

ElementsResult CountOf(const SymbolicNode& node, Symbols& symbols) {
  const SymbolicShape* const shape = node.ShapeOf(0);
  if (shape == nullptr) return std::nullopt;
  return SymbolicElements{{}, {symbols.Product(*shape)}};
}

}  // namespace

std::optional<SymbolicElements> ResultElements(const SymbolicNode& node, Symbols& symbols) {
  const std::string& op = node.node().op;
  const bool combines = std::ranges::find(kCombine, op) != std::end(kCombine);
  if (combines && !node.node().attributes.contains("axis")) return Combined(node, symbols);
  if (op == "Shape") return SizesOf(node);
  if (op == "Size") return CountOf(node, symbols);
  if (op == "Cast") return Casted(node, symbols);
  if (op == "ConstantOfShape" || op == "Expand") return Filled(node);
  if (op == "ReduceProd") return Multiplied(node, symbols);
  return std::ranges::find(kElementMoves, op) != std::end(kElementMoves) ? Moved(node) : std::nullopt;
}

}  // namespace swizzle
