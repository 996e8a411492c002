#include "model_loader/semantics/slices.h"

#include <algorithm>

namespace swizzle {

StatusOr<SliceRange> ClampSlice(int64_t start, int64_t end, int64_t step, int64_t size) {
  if (step == 0) return InvalidArgument("a slice has step 0");
  if (size == 0) return SliceRange{0, 0, step};
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  SliceRange range{0, 0, step};
  if (step > 0) {
    range.start = place(start, 0, size);
    const int64_t last = place(end, 0, size);
    if (last > range.start) range.count = (last - range.start - 1) / step + 1;
  } else {
    range.start = place(start, 0, size - 1);
    const int64_t last = place(end, -1, size - 1);
    const int64_t back = step < -size ? size : -step;  // -step may not exist; so long a step takes one element
    if (range.start > last) range.count = (range.start - last - 1) / back + 1;
  }
  return range;
}

StatusOr<std::vector<int64_t>> PartLengths(std::vector<int64_t> given, int64_t size, int64_t parts) {
  if (given.empty()) {
    const int64_t part = size / parts + (size % parts != 0 ? 1 : 0);
    if (part * (parts - 1) > size) return InvalidArgument("a dimension of ", size, " has no ", parts, " parts");
    given.assign(static_cast<size_t>(parts), part);
    given.back() = size - part * (parts - 1);
  }
  int64_t left = size;
  for (const int64_t length : given) {
    if (length < 0 || length > left) return InvalidArgument("the parts do not add up to ", size);
    left -= length;
  }
  if (left != 0 || static_cast<int64_t>(given.size()) != parts) {
    return InvalidArgument(given.size(), " parts for ", parts, " outputs of together ", size);
  }
  return given;
}

}  // namespace swizzle
