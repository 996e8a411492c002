#include "server/model/reshaped_dims.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace swizzle {
namespace {

// Of all dimensions that are not open; nothing where they overflow.
std::optional<int64_t> ClosedElements(const Shape& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim != -1 && __builtin_mul_overflow(elements, dim, &elements)) return std::nullopt;
  }
  return elements;
}

}  // namespace

bool DimsReshape(const Shape& from, const Shape& to) {
  const std::optional<int64_t> elements = ClosedElements(from);
  return std::ranges::count(from, -1) == std::ranges::count(to, -1) && elements && elements == ClosedElements(to);
}

Shape Reshaped(const Shape& shape, size_t leading, const Shape& from, const Shape& to) {
  Shape open;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == -1) open.push_back(shape[leading + i]);
  }
  Shape reshaped(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(leading));
  size_t next = 0;
  for (const int64_t dim : to) reshaped.push_back(dim == -1 ? open[next++] : dim);
  return reshaped;
}

}  // namespace swizzle
