// Row-major tensors: extents, strides, and how shapes broadcast. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_STRIDES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_STRIDES_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/base/tensor.h"

namespace swizzle {

// Numbers by dimension, which are nowhere allocated where there are few.
using Extents = absl::InlinedVector<int64_t, 6>;

// The product of dimensions [begin, end). REQUIRES: it fits in 64 bits.
int64_t ProductOf(const Shape& shape, int64_t begin, int64_t end);

// Elements between neighbours along each dimension of a dense tensor. REQUIRES: they fit in 64 bits.
Shape DenseStrides(const Shape& shape);

// Strides that read a tensor of shape `from` as one of shape `to`: 0 along broadcast dimensions.
// REQUIRES: `from` broadcasts to `to`.
Shape BroadcastStrides(const Shape& from, const Shape& to);
Extents BroadcastExtents(const Shape& from, const Shape& to);  // the same

// The shape that both broadcast to, as ONNX and NumPy do it, of dimensions of any kind that can be compared; nothing if
// they don't. is_one(dimension): it goes with every other.
template <typename Dimension, typename IsOne>
std::optional<std::vector<Dimension>> BroadcastDimensions(const std::vector<Dimension>& a,
                                                          const std::vector<Dimension>& b, const IsOne& is_one) {
  const std::vector<Dimension>& shorter = a.size() >= b.size() ? b : a;
  std::vector<Dimension> shape = a.size() >= b.size() ? a : b;
  for (size_t i = 1; i <= shorter.size(); ++i) {
    Dimension& dimension = shape[shape.size() - i];
    const Dimension& other = shorter[shorter.size() - i];
    if (is_one(other) || other == dimension) continue;
    if (!is_one(dimension)) return std::nullopt;
    dimension = other;
  }
  return shape;
}

// The shape all broadcast to. A free dimension (-1) goes with itself and with 1.
StatusOr<Shape> BroadcastShape(std::span<const Shape> shapes);

// Below opset 7 the second of two operands was put at an axis of the first: its shape with the ones behind it that put
// it there. INVALID_ARGUMENT if there is no room. REQUIRES: 0 <= axis < rank of the first.
StatusOr<Shape> ShapeAtAxis(Shape second, int64_t axis, int64_t rank);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_STRIDES_H_
