#include "model_loader/interpreter/values/moved.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/integers.h"
#include "model_loader/semantics/strides.h"

namespace swizzle::interpreter {
namespace {

using Box = Moved::Box;
using Distance = Shape::difference_type;

size_t FirstOf(const Moved& moved, size_t dimension) {
  return std::accumulate(moved.splits.begin(), moved.splits.begin() + static_cast<Distance>(dimension), size_t{0});
}

// A dimension more, before `d`.
void Insert(Moved& moved, size_t d, int64_t extent) {
  const auto at = static_cast<Distance>(d);
  moved.dims.insert(moved.dims.begin() + at, extent);
  for (Box& box : moved.boxes) {
    box.start.insert(box.start.begin() + at, 0);
    box.extent.insert(box.extent.begin() + at, extent);
    box.strides.insert(box.strides.begin() + at, 0);
  }
}

void Erase(Moved& moved, size_t d) {
  const auto at = static_cast<Distance>(d);
  moved.dims.erase(moved.dims.begin() + at);
  for (Box& box : moved.boxes) {
    for (Shape* const list : {&box.start, &box.extent, &box.strides}) list->erase(list->begin() + at);
  }
}

void DropOnes(Moved& moved) {
  for (size_t d = moved.dims.size(); d-- > 0;) {
    if (moved.dims[d] == 1) Erase(moved, d);
  }
}

// Splits `d` into two, of which the second is `inner`. A box becomes up to three: what begins a line, lines, the rest.
void SplitInTwo(Moved& moved, size_t d, int64_t inner) {
  const std::vector<Box> boxes = std::move(moved.boxes);
  moved.boxes.clear();
  const auto at = static_cast<Distance>(d);
  for (const Box& box : boxes) {
    const int64_t first = box.start[d], end = first + box.extent[d], stride = box.strides[d];
    for (int64_t from = first; from < end;) {
      const bool lines = from % inner == 0 && end - from >= inner;
      const int64_t count = lines ? (end - from) / inner : 1;
      const int64_t length = lines ? inner : std::min(inner - from % inner, end - from);
      Box& part = moved.boxes.emplace_back(box);
      part.offset += (from - first) * stride;
      part.start[d] = from / inner;
      part.extent[d] = count;
      part.strides[d] = stride * inner;
      part.start.insert(part.start.begin() + at + 1, from % inner);
      part.extent.insert(part.extent.begin() + at + 1, length);
      part.strides.insert(part.strides.begin() + at + 1, stride);
      from += count * length;
    }
  }
  moved.dims[d] /= inner;
  moved.dims.insert(moved.dims.begin() + at + 1, inner);
}

// Makes `d` and the next one dimension. Whether that needs no more boxes than there may be.
bool JoinWithNext(Moved& moved, size_t d) {
  const std::vector<Box> boxes = std::move(moved.boxes);
  moved.boxes.clear();
  const int64_t inner = moved.dims[d + 1];
  for (const Box& box : boxes) {
    const int64_t count = box.extent[d], length = box.extent[d + 1];
    const int64_t stride = box.strides[d], step = length > 1 ? box.strides[d + 1] : stride;
    const bool at_once = count == 1 || (length == inner && stride == step * inner);
    for (int64_t i = 0; i < (at_once ? 1 : count); ++i) {
      if (moved.boxes.size() == Moved::kMostBoxes) return false;
      Box& part = moved.boxes.emplace_back(box);
      part.offset += i * stride;
      part.start[d] = (box.start[d] + i) * inner + box.start[d + 1];
      part.extent[d] = at_once ? count * length : length;
      part.strides[d] = step;
      for (Shape* const list : {&part.start, &part.extent, &part.strides}) {
        list->erase(list->begin() + static_cast<Distance>(d) + 1);
      }
    }
  }
  moved.dims[d] *= inner;
  moved.dims.erase(moved.dims.begin() + static_cast<Distance>(d) + 1);
  return true;
}

// Makes a dimension of the array one of `dims`, whose place is returned.
std::optional<size_t> Unsplit(Moved& moved, size_t dimension) {
  const size_t first = FirstOf(moved, dimension);
  size_t& count = moved.splits[dimension];
  if (count == 0) {
    Insert(moved, first, 1);
    count = 1;
  }
  for (; count > 1; --count) {
    if (!JoinWithNext(moved, first + count - 2)) return std::nullopt;
  }
  return first;
}

// What is left of the box of elements start, start + step, ... along `d`.
std::optional<Box> Within(Box box, size_t d, const SliceRange& range) {
  const int64_t begin = box.start[d], last = begin + box.extent[d] - 1;
  const int64_t step = range.count > 1 ? range.step : 1;
  // The first and the last j whose start + j * step are in the box.
  const auto up = [](int64_t a, int64_t b) { return a <= 0 ? 0 : CeilDiv(a, b); };
  const int64_t low = step > 0 ? up(begin - range.start, step) : up(range.start - last, -step);
  const int64_t past = step > 0 ? last - range.start : range.start - begin;
  if (past < 0) return std::nullopt;
  const int64_t high = std::min(past / (step > 0 ? step : -step), range.count - 1);
  if (low > high) return std::nullopt;
  box.offset += (range.start + low * step - begin) * box.strides[d];
  box.start[d] = low;
  box.extent[d] = high - low + 1;
  box.strides[d] *= step;
  return box;
}

// Lets go of arrays in which no box lies any more.
void DropUnread(Moved& moved) {
  std::vector<std::optional<size_t>> places(moved.sources.size());  // of each, among those that are kept
  std::vector<Array> kept;
  for (Box& box : moved.boxes) {
    std::optional<size_t>& place = places[box.source];
    if (!place) {
      place = kept.size();
      kept.push_back(std::move(moved.sources[box.source]));
    }
    box.source = *place;
  }
  moved.sources = std::move(kept);
}

}  // namespace

size_t Moved::rank() const {
  return static_cast<size_t>(std::ranges::count_if(dims, [](int64_t dim) { return dim != 1; }));
}

Moved MovedOf(const Array& array) {
  if (array.moved != nullptr) return array.moved->made ? MovedOf(*array.moved->made) : *array.moved;
  const size_t rank = array.shape.size();
  return {array.shape,
          std::vector<size_t>(rank, 1),
          {{Shape(rank, 0), array.shape, 0, 0, DenseStrides(array.shape)}},
          {array}};
}

size_t BoxesOf(const Array& array) {
  return array.moved == nullptr || array.moved->made ? 1 : array.moved->boxes.size();
}

std::optional<Moved> ReshapedMoved(Moved moved, const Shape& shape) {
  DropOnes(moved);
  moved.splits.clear();
  size_t d = 0;
  for (int64_t rest : shape) {
    size_t count = 0;
    for (; rest > 1; ++d, ++count) {
      // What spans two dimensions that are neither is made one first.
      while (rest % moved.dims[d] != 0 && moved.dims[d] % rest != 0) {
        if (!JoinWithNext(moved, d)) return std::nullopt;
      }
      if (moved.dims[d] > rest) SplitInTwo(moved, d, moved.dims[d] / rest);
      if (moved.boxes.size() > Moved::kMostBoxes) return std::nullopt;
      rest /= moved.dims[d];
    }
    moved.splits.push_back(count);
  }
  return moved;
}

Moved TransposedMoved(const Moved& moved, std::span<const int64_t> order) {
  std::vector<size_t> from;  // by dimension
  Moved turned{{}, {}, moved.boxes, moved.sources};
  for (const int64_t dimension : order) {
    const size_t first = FirstOf(moved, static_cast<size_t>(dimension));
    turned.splits.push_back(moved.splits[static_cast<size_t>(dimension)]);
    for (size_t i = 0; i < turned.splits.back(); ++i) from.push_back(first + i);
  }
  const auto turn = [&](const Shape& list) {
    Shape made;
    made.reserve(from.size());
    for (const size_t d : from) made.push_back(list[d]);
    return made;
  };
  turned.dims = turn(moved.dims);
  for (Box& box : turned.boxes) {
    for (Shape* const list : {&box.start, &box.extent, &box.strides}) *list = turn(*list);
  }
  return turned;
}

std::optional<Moved> SlicedMoved(Moved moved, std::span<const SliceRange> ranges) {
  for (size_t i = 0; i < ranges.size(); ++i) {
    const SliceRange& range = ranges[i];
    const size_t first = FirstOf(moved, i);
    const int64_t extent = std::accumulate(moved.dims.begin() + static_cast<Distance>(first),
                                           moved.dims.begin() + static_cast<Distance>(first + moved.splits[i]),
                                           int64_t{1}, std::multiplies());
    if (range.start == 0 && range.count == extent && (extent == 1 || range.step == 1)) continue;
    const auto d = Unsplit(moved, i);
    if (!d) return std::nullopt;
    std::vector<Box> kept;
    for (Box& box : moved.boxes) {
      if (auto part = Within(std::move(box), *d, range)) kept.push_back(*std::move(part));
    }
    moved.boxes = std::move(kept);
    moved.dims[*d] = range.count;
  }
  DropUnread(moved);
  return moved;
}

std::optional<Moved> PaddedMoved(Moved moved, std::span<const int64_t> before, std::span<const int64_t> after,
                                 const Array& filler) {
  moved.sources.push_back(filler);
  const size_t source = moved.sources.size() - 1;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    const auto d = Unsplit(moved, i);
    if (!d) return std::nullopt;
    const int64_t extent = moved.dims[*d];
    for (Box& box : moved.boxes) box.start[*d] += before[i];
    moved.dims[*d] += before[i] + after[i];
    for (const auto& [start, count] : {std::pair<int64_t, int64_t>(0, before[i]), {before[i] + extent, after[i]}}) {
      if (count == 0) continue;
      Box& slab = moved.boxes.emplace_back(
          Box{Shape(moved.dims.size(), 0), moved.dims, source, 0, Shape(moved.dims.size(), 0)});
      slab.start[*d] = start;
      slab.extent[*d] = count;
    }
    if (moved.boxes.size() > Moved::kMostBoxes) return std::nullopt;
  }
  return moved;
}

std::optional<Moved> BroadcastMoved(Moved moved, const Shape& shape) {
  while (moved.splits.size() < shape.size()) moved.splits.insert(moved.splits.begin(), 0);
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t first = FirstOf(moved, i);
    const auto begin = moved.dims.begin() + static_cast<Distance>(first);
    const int64_t extent =
        std::accumulate(begin, begin + static_cast<Distance>(moved.splits[i]), int64_t{1}, std::multiplies());
    if (extent == shape[i]) continue;
    for (; moved.splits[i] > 0; --moved.splits[i]) Erase(moved, first);
    Insert(moved, first, shape[i]);
    moved.splits[i] = 1;
  }
  return moved;
}

std::optional<Moved> ConcatenatedMoved(std::vector<Moved> parts, size_t axis) {
  const auto split_of = [](const Moved& part, size_t dimension) {
    const auto first = part.dims.begin() + static_cast<Distance>(FirstOf(part, dimension));
    return Shape(first, first + static_cast<Distance>(part.splits[dimension]));
  };
  for (size_t i = 0; i < parts.front().splits.size(); ++i) {
    const Shape as_first = split_of(parts.front(), i);
    const auto is_split_so = [&](const Moved& part) { return split_of(part, i) == as_first; };
    if (i != axis && std::ranges::all_of(parts, is_split_so)) continue;
    for (Moved& part : parts) {
      if (!Unsplit(part, i)) return std::nullopt;
    }
  }
  Moved all = std::move(parts.front());
  const size_t d = FirstOf(all, axis);
  for (size_t p = 1; p < parts.size(); ++p) {
    if (all.boxes.size() + parts[p].boxes.size() > Moved::kMostBoxes) return std::nullopt;
    for (Box& box : parts[p].boxes) {
      box.start[d] += all.dims[d];
      box.source += all.sources.size();
      all.boxes.push_back(std::move(box));
    }
    all.dims[d] += parts[p].dims[d];
    std::ranges::move(parts[p].sources, std::back_inserter(all.sources));
  }
  return all;
}

}  // namespace swizzle::interpreter
