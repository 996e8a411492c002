// Arithmetic on the sizes of dimensions, as exporters write it before Reshape, Expand and Slice. semantics/evaluate.h
// does that where every element is known; here some may be any.
#include <algorithm>
#include <string_view>

#include "model_loader/fallback/batch_rules.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/slices.h"

namespace swizzle::fallback {
namespace {

using List = std::optional<BatchFact>;

bool IsList(const BatchFact& fact) { return fact.shape && fact.shape->size() == 1; }

// Shape's, from its attributes start and end.
List SizesOf(const NodeFacts& node) {
  const Extents* const shape = node.ShapeOf(0);
  if (shape == nullptr) return std::nullopt;
  const std::optional<SliceRange> range = ShapeRange(node, static_cast<int64_t>(shape->size()));
  if (!range) return std::nullopt;
  const auto first = shape->begin() + range->start;
  return BatchFact::OfList(Extents(first, first + range->count));
}

// Its first input's elements, in a new shape; nothing where that has another number of them.
List Kept(const NodeFacts& node, const Extents* shape) {
  auto elements = node.In(0).Elements();
  const auto count = shape == nullptr ? std::nullopt : CountOf(*shape, 0, shape->size());
  if (!elements || !count || *count != static_cast<int64_t>(elements->size())) return std::nullopt;
  BatchFact fact = BatchFact::OfShape(*shape);
  fact.elements = std::move(elements);
  return fact;
}

// Of 32 bits only what they hold is known, as of the results of arithmetic.
List Casted(const NodeFacts& node) {
  const StatusOr<DType> to = CastType(node.node());
  const bool keeps = to.ok() && (*to == DType::kInt64 || *to == DType::kInt32);
  List list = keeps ? Kept(node, node.ShapeOf(0)) : std::nullopt;
  if (!list || *to == DType::kInt64) return list;
  for (Extent& element : *list->elements) {
    if (element.IsKnown()) element = *Computed("Mul", element, Extent::Of(1));
  }
  return list;
}

List Picked(const NodeFacts& node) {
  const auto list = node.In(0).List();
  const auto indices = node.Numbers(1);
  if (!list || !indices || !IsList(node.In(0))) return std::nullopt;
  const auto count = static_cast<int64_t>(list->size());
  Extents picked;
  for (const int64_t index : *indices) {
    if (index < -count || index >= count) return std::nullopt;
    picked.push_back((*list)[static_cast<size_t>(index < 0 ? index + count : index)]);
  }
  BatchFact fact = BatchFact::OfShape(*node.ShapeOf(1));
  fact.elements = std::move(picked);
  return fact;
}

// Along one dimension, which no attribute names; starts, ends and steps may go by nothing.
List Sliced(const NodeFacts& node) {
  const auto elements = node.In(0).Elements();
  const auto starts = node.Numbers(1), ends = node.Numbers(2);
  const auto axes = node.Has(3) ? node.Numbers(3) : std::vector<int64_t>{0};
  const auto steps = node.Has(4) ? node.Numbers(4) : std::vector<int64_t>{1};
  const bool one = starts && ends && axes && steps && starts->size() == 1 && ends->size() == 1 && axes->size() == 1 &&
                   steps->size() == 1;
  const bool by_attribute = !node.Has(3) && node.node().attributes.contains("axes");
  if (!elements || elements->empty() || !one || by_attribute) return std::nullopt;
  Extents shape = *node.ShapeOf(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = axes->front() < 0 ? axes->front() + rank : axes->front();
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<size_t>(axis);
  const int64_t size = shape[at].number, inner = *CountOf(shape, at + 1, shape.size()), outer = *CountOf(shape, 0, at);
  const StatusOr<SliceRange> range = ClampSlice(starts->front(), ends->front(), steps->front(), size);
  if (!range.ok()) return std::nullopt;
  BatchFact fact = BatchFact::OfShape(shape);
  (*fact.shape)[at] = Extent::Of(range->count);
  fact.elements.emplace();
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < range->count; ++i) {
      const auto first = elements->begin() + (o * size + range->start + i * range->step) * inner;
      fact.elements->insert(fact.elements->end(), first, first + inner);
    }
  }
  return fact;
}

List Turned(const NodeFacts& node) {
  const auto elements = node.In(0).Elements();
  const Extents* const shape = node.ShapeOf(0);
  if (!elements || elements->empty() || shape->size() != 2) return std::nullopt;
  const StatusOr<std::vector<int64_t>> order = PermutationOf(node.node(), 2);
  if (!order.ok()) return std::nullopt;
  if (order->front() == 0) return Kept(node, shape);
  const auto rows = static_cast<size_t>(shape->front().number), columns = static_cast<size_t>(shape->back().number);
  BatchFact fact = BatchFact::OfShape(Extents{shape->back(), shape->front()});
  fact.elements.emplace();
  for (size_t c = 0; c < columns; ++c) {
    for (size_t r = 0; r < rows; ++r) fact.elements->push_back((*elements)[r * columns + c]);
  }
  return fact;
}

List Joined(const NodeFacts& node) {
  Extents joined;
  for (size_t i = 0; i < node.size(); ++i) {
    const auto list = node.In(i).List();
    if (!list || !IsList(node.In(i))) return std::nullopt;
    joined.insert(joined.end(), list->begin(), list->end());
    if (joined.size() > kMostElements) return std::nullopt;
  }
  return BatchFact::OfList(std::move(joined));
}

// Of operators of each element, with one number in place of a list of the same.
List Combined(const NodeFacts& node) {
  const bool chooses = node.node().op == "Where";
  if (node.size() != (chooses ? 3U : 2U)) return std::nullopt;
  size_t count = 1;
  bool is_list = false;
  std::vector<Extents> lists;
  for (size_t i = 0; i < node.size(); ++i) {
    const auto list = node.In(i).List();
    if (!list || (list->size() != 1 && count != 1 && list->size() != count)) return std::nullopt;
    if (list->size() != 1) count = list->size();
    is_list |= IsList(node.In(i));
    lists.push_back(*list);
  }
  Extents results;
  for (size_t i = 0; i < count; ++i) {
    const auto at = [&](size_t of) { return lists[of][lists[of].size() == 1 ? 0 : i]; };
    const auto result = chooses ? Chosen(at(0), at(1), at(2)) : Computed(node.node().op, at(0), at(1));
    if (!result) return std::nullopt;
    results.push_back(*result);
  }
  return is_list ? BatchFact::OfList(std::move(results)) : BatchFact::OfElements(std::move(results), {});
}

// ConstantOfShape, of a list's length.
List Filled(const NodeFacts& node) {
  const auto counts = node.Numbers(0);
  const auto value = node.node().attributes.find("value");
  const auto* const tensor = value == node.node().attributes.end() ? nullptr : std::get_if<Tensor>(&value->second);
  if (!counts || counts->size() != 1 || tensor == nullptr) return std::nullopt;
  const auto number = BatchFact::OfConstant(*tensor).elements;
  const int64_t count = counts->front();
  if (!number || number->size() != 1 || count < 0 || count > static_cast<int64_t>(kMostElements)) return std::nullopt;
  return BatchFact::OfList(Extents(static_cast<size_t>(count), number->front()));
}

List Passed(const NodeFacts& node) { return Kept(node, node.ShapeOf(0)); }

List Reshaped(const NodeFacts& node) {
  const auto shape = node.In(0).Elements() && node.AreShared(1) ? MovedShape(node) : std::nullopt;
  if (!shape) return std::nullopt;
  Extents result = *shape;  // in which one may be left to be found
  const auto left = std::ranges::find_if_not(result, &Extent::IsNumber);
  if (left != result.end()) {
    *left = Extent::Of(1);
    const auto others = CountOf(result, 0, result.size());
    const auto count = static_cast<int64_t>(node.In(0).Elements()->size());
    if (!others || *others == 0 || count % *others != 0) return std::nullopt;
    *left = Extent::Of(count / *others);
  }
  return Kept(node, &result);
}

struct ListFunction {
  std::string_view op;
  List (*run)(const NodeFacts&);
};
constexpr ListFunction kFunctions[] = {
    {"Add", Combined},       {"Cast", Casted},      {"Concat", Joined},    {"ConstantOfShape", Filled},
    {"Div", Combined},       {"Equal", Combined},   {"Gather", Picked},    {"Greater", Combined},
    {"Identity", Passed},    {"Less", Combined},    {"Max", Combined},     {"Min", Combined},
    {"Mod", Combined},       {"Mul", Combined},     {"Reshape", Reshaped}, {"Shape", SizesOf},
    {"Slice", Sliced},       {"Squeeze", Reshaped}, {"Sub", Combined},     {"Transpose", Turned},
    {"Unsqueeze", Reshaped}, {"Where", Combined},
};

}  // namespace

List ComputedList(const NodeFacts& node) {
  if (!node.node().domain.empty() || (node.opset() < 7 && node.node().attributes.contains("axis"))) return std::nullopt;
  const auto found = std::ranges::find(kFunctions, node.node().op, &ListFunction::op);
  return found == std::end(kFunctions) ? std::nullopt : found->run(node);
}

}  // namespace swizzle::fallback
