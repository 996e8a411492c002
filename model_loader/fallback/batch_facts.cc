#include "model_loader/fallback/batch_facts.h"

#include <algorithm>
#include <cstring>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/given_axes.h"

namespace swizzle::fallback {
namespace {

template <typename Element>
Extents ReadAs(const Tensor& tensor) {
  Extents elements;
  for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(Element)) {
    Element element;
    std::memcpy(&element, tensor.bytes.data() + at, sizeof(element));
    elements.push_back(Extent::Of(static_cast<int64_t>(element)));
  }
  return elements;
}

std::optional<Extents> WholeElements(const Tensor& tensor) {
  if (static_cast<size_t>(tensor.elements()) > kMostElements) return std::nullopt;
  if (tensor.dtype == DType::kInt64) return ReadAs<int64_t>(tensor);
  if (tensor.dtype == DType::kInt32) return ReadAs<int32_t>(tensor);
  if (tensor.dtype != DType::kBool) return std::nullopt;
  Extents flags = ReadAs<uint8_t>(tensor);
  for (Extent& flag : flags) flag = Extent::Of(flag.number != 0);
  return flags;
}

}  // namespace

BatchFact BatchFact::OfConstant(const Tensor& constant) {
  return {
      .known = true, .shape = ExtentsOf(constant.shape), .elements = WholeElements(constant), .constant = &constant};
}

BatchFact BatchFact::OfElements(Extents elements, const Shape& shape) {
  return {.known = true, .shape = ExtentsOf(shape), .elements = std::move(elements)};
}

BatchFact BatchFact::OfList(Extents elements) {
  const auto count = static_cast<int64_t>(elements.size());
  return OfElements(std::move(elements), {count});
}

std::optional<Extents> BatchFact::Elements() const {
  if (elements || !IsShared() || !shape) return elements;
  const auto count = CountOf(*shape, 0, shape->size());
  if (!count || *count > static_cast<int64_t>(kMostElements)) return std::nullopt;
  return Extents(static_cast<size_t>(*count));
}

std::optional<Extents> BatchFact::List() const { return shape && shape->size() <= 1 ? Elements() : std::nullopt; }

const BatchFact& NodeFacts::In(size_t i) const {
  static const BatchFact kAbsent = BatchFact::Shared();
  return Has(i) ? facts_[static_cast<size_t>(node_.inputs[i])] : kAbsent;
}

const Extents* NodeFacts::ShapeOf(size_t i) const {
  const BatchFact& fact = In(i);
  return fact.shape ? &*fact.shape : nullptr;
}

bool NodeFacts::AreShared(size_t first) const {
  for (size_t i = first; i < size(); ++i) {
    if (!In(i).IsShared()) return false;
  }
  return true;
}

std::optional<std::vector<int64_t>> NodeFacts::Numbers(size_t i) const {
  const auto list = In(i).List();
  if (!list || !std::ranges::all_of(*list, &Extent::IsNumber)) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Extent& element : *list) numbers.push_back(element.number);
  return numbers;
}

std::optional<std::vector<int64_t>> NodeFacts::Axes(size_t i, int64_t rank) const {
  const auto of_input = [&]() -> StatusOr<std::vector<int64_t>> {
    if (auto list = Numbers(i)) return *std::move(list);
    return InvalidArgument("its axes are not known");
  };
  const auto axes = GivenAxes(node_, Has(i), of_input);
  if (!axes.ok() || !*axes) return std::nullopt;
  const StatusOr<std::vector<int64_t>> normal = NormalAxes(**axes, rank);
  return normal.ok() ? std::optional(*normal) : std::nullopt;
}

std::optional<int64_t> NodeFacts::Axis(int64_t absent, int64_t rank) const {
  const auto axis = Int("axis", absent);
  if (!axis) return std::nullopt;
  const StatusOr<int64_t> normal = NormalAxis(*axis, rank);
  return normal.ok() ? std::optional(*normal) : std::nullopt;
}

std::optional<int64_t> NodeFacts::Int(const std::string& name, int64_t absent) const {
  const StatusOr<int64_t> value = IntAttribute(node_, name, absent);
  return value.ok() ? std::optional(*value) : std::nullopt;
}

}  // namespace swizzle::fallback
