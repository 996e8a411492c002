#include "model_loader/regions/row_counts.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "model_loader/interpreter/values/moved.h"
#include "model_loader/interpreter/values/settle.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::regions {

using interpreter::Array;
using interpreter::Moved;

namespace {

// By value of the network, the rows of the inputs that it is computed of; what is computed of none has rows of 1.
StatusOr<std::vector<Shape>> RowsOfValues(const std::vector<Shape>& own, const Network& network) {
  std::vector<Shape> rows(network.values.size(), Shape(own.empty() ? 0 : own[0].size(), 1));
  const auto join = [](Shape& to, const Shape& from) {
    SWIZZLE_ASSIGN_OR_RETURN(to, BroadcastShape(std::array{to, from}));
    return Status();
  };
  for (size_t i = 0; i < own.size(); ++i) {
    const int value = network.inputs[i].value;
    if (value >= 0) SWIZZLE_RETURN_IF_ERROR(join(rows[static_cast<size_t>(value)], own[i]));
  }
  for (const Layer& layer : network.layers) {
    for (const int input : layer.inputs) {
      if (input < 0) continue;
      SWIZZLE_RETURN_IF_ERROR(join(rows[static_cast<size_t>(layer.output)], rows[static_cast<size_t>(input)]));
    }
  }
  return rows;
}

bool IsEmpty(const Shape& rows) { return std::ranges::find(rows, 0) != rows.end(); }

bool BroadcastsTo(const Shape& from, const Shape& to) {
  const auto joined = BroadcastShape(std::array{from, to});
  return joined.ok() && *joined == to;
}

}  // namespace

StatusOr<RowCounts> RowCounts::Of(std::vector<Shape> own, const Network& network) {
  RowCounts counts;
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Shape> of_values, RowsOfValues(own, network));
  for (const NetworkPort& port : network.outputs) {
    counts.of_outputs_.push_back(of_values[static_cast<size_t>(port.value)]);
    if (IsEmpty(counts.of_outputs_.back())) continue;
    // The first run that it can be part of.
    bool joined = false;
    for (Shape& run : counts.runs_) {
      auto both = BroadcastShape(std::array{run, counts.of_outputs_.back()});
      joined = both.ok();
      if (joined) run = *std::move(both);
      if (joined) break;
    }
    if (!joined) counts.runs_.push_back(counts.of_outputs_.back());
  }
  return counts;
}

size_t RowCounts::RunOf(size_t output) const {
  const auto run =
      std::ranges::find_if(runs_, [&](const Shape& its) { return BroadcastsTo(of_outputs_[output], its); });
  SWIZZLE_CHECK(run != runs_.end());
  return static_cast<size_t>(run - runs_.begin());
}

StatusOr<int64_t> RowCounts::most_rows() const {
  int64_t most = 0;
  for (const Shape& run : runs_) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t rows, ElementCount(run));
    most = std::max(most, rows);
  }
  return most;
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
  std::vector<SliceRange> first;
  for (size_t d = 0; d < shape.size(); ++d) first.push_back({0, array.shape[d] < shape[d] ? 1 : shape[d], 1});
  std::optional<Moved> moved = SlicedMoved(interpreter::MovedOf(array), first);
  SWIZZLE_CHECK(moved.has_value());  // a made array is one box
  moved = BroadcastMoved(*std::move(moved), shape);
  SWIZZLE_CHECK(moved.has_value());
  SWIZZLE_RETURN_IF_ERROR(place.memory.Check(array.dtype, shape));
  Array other{array.dtype, std::move(shape), nullptr};
  other.place = array.place;
  other.moved = std::make_shared<const Moved>(*std::move(moved));
  return interpreter::Settled(other, place.memory, place.stream, place.device);
}

}  // namespace swizzle::regions
