#include "model_loader/regions/row_counts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "model_loader/fallback/moved.h"
#include "model_loader/fallback/settle.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::regions {

using fallback::Array;
using fallback::Moved;

StatusOr<RowCounts> RowCounts::Of(std::vector<Shape> own) {
  RowCounts counts;
  SWIZZLE_ASSIGN_OR_RETURN(counts.all_, BroadcastShape(own));
  counts.alike_ = std::ranges::all_of(own, [&](const Shape& each) { return each == counts.all_; });
  counts.own_ = std::move(own);
  return counts;
}

std::vector<Shape> RowCounts::OfOutputs(const Network& network) const {
  // By value of the network. What is read by nothing has none.
  std::vector<Shape> shapes(network.values.size(), Shape(all_.size(), 1));
  const auto join = [](Shape& to, const Shape& from) {
    for (size_t d = 0; d < to.size(); ++d) to[d] = to[d] == 1 ? from[d] : to[d];
  };
  for (size_t i = 0; i < own_.size(); ++i) {
    if (network.inputs[i].value >= 0) join(shapes[static_cast<size_t>(network.inputs[i].value)], own_[i]);
  }
  for (const Layer& layer : network.layers) {
    for (const int input : layer.inputs) {
      if (input >= 0) join(shapes[static_cast<size_t>(layer.output)], shapes[static_cast<size_t>(input)]);
    }
  }
  std::vector<Shape> of_outputs;
  for (const NetworkPort& port : network.outputs) of_outputs.push_back(shapes[static_cast<size_t>(port.value)]);
  return of_outputs;
}

StatusOr<Array> WithRows(const Array& array, const Shape& leading, const RowPlace& place) {
  Shape shape = leading;
  shape.insert(shape.end(), array.shape.begin() + static_cast<ptrdiff_t>(leading.size()), array.shape.end());
  if (shape == array.shape) return array;
  if (array.elements() == 0) {
    SWIZZLE_ASSIGN_OR_RETURN(Array any, place.memory.Allocate(array.dtype, std::move(shape)));
    if (place.device == nullptr) std::fill_n(any.data.get(), any.bytes(), std::byte{0});
    return any;
  }
  const bool repeats = ProductOf(shape, 0, static_cast<int64_t>(shape.size())) > array.elements();
  std::vector<SliceRange> first;
  for (const int64_t extent : shape) first.push_back({0, extent, 1});
  std::optional<Moved> moved = fallback::MovedOf(array);
  moved = repeats ? BroadcastMoved(*std::move(moved), shape) : SlicedMoved(*std::move(moved), first);
  SWIZZLE_CHECK(moved.has_value());  // a made array is one box
  SWIZZLE_RETURN_IF_ERROR(place.memory.Check(array.dtype, shape));
  Array other{array.dtype, std::move(shape), nullptr};
  other.place = array.place;
  other.moved = std::make_shared<const Moved>(*std::move(moved));
  return fallback::Settled(other, place.memory, place.stream, place.device);
}

}  // namespace swizzle::regions
