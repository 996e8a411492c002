// What Slice, Split and Shape take of one dimension. Pure functions: the numbers may be anything that a file holds.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_SLICES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_SLICES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

// Elements start, start + step, ..., `count` of them. Where there is more than one, |step| is below the dimension.
struct SliceRange {
  int64_t start = 0, count = 0, step = 1;
};

// As ONNX's Slice does it: places below 0 count from the end, and what lies outside is clamped. INVALID_ARGUMENT if the
// step is 0. REQUIRES: size >= 0.
StatusOr<SliceRange> ClampSlice(int64_t start, int64_t end, int64_t step, int64_t size);

// The dimensions that Shape takes, of `rank`, by its attributes start and end; nothing where they are not known.
// node.Int(name, absent) is an optional number.
template <typename Node>
std::optional<SliceRange> ShapeRange(const Node& node, int64_t rank) {
  const auto start = node.Int("start", 0), end = node.Int("end", rank);
  if (!start || !end) return std::nullopt;
  const StatusOr<SliceRange> range = ClampSlice(*start, *end, 1, rank);
  return range.ok() ? std::optional(*range) : std::nullopt;
}

// How long each of Split's `parts` is: as `given`, which must add up to `size`, or, where that is empty, equally long
// but for the last, which may be shorter. INVALID_ARGUMENT if there are no such parts. REQUIRES: size >= 0, parts >= 1.
StatusOr<std::vector<int64_t>> PartLengths(std::vector<int64_t> given, int64_t size, int64_t parts);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_SLICES_H_
