#include "model_loader/semantics/strides.h"

namespace swizzle {

int64_t ProductOf(const Shape& shape, int64_t begin, int64_t end) {
  int64_t product = 1;
  for (int64_t i = begin; i < end; ++i) product *= shape[static_cast<size_t>(i)];
  return product;
}

Shape DenseStrides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Extents BroadcastExtents(const Shape& from, const Shape& to) {
  Extents strides(to.size(), 0);
  const size_t skipped = to.size() - from.size();
  int64_t stride = 1;
  for (size_t d = from.size(); d-- > 0; stride *= from[d]) {
    if (from[d] != 1) strides[skipped + d] = stride;
  }
  return strides;
}

Shape BroadcastStrides(const Shape& from, const Shape& to) {
  const Extents strides = BroadcastExtents(from, to);
  return Shape(strides.begin(), strides.end());
}

StatusOr<Shape> BroadcastShape(std::span<const Shape> shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    auto both = BroadcastDimensions(result, shape, [](int64_t dimension) { return dimension == 1; });
    if (!both) return InvalidArgument("shapes ", ShapeText(result), " and ", ShapeText(shape), " do not broadcast");
    result = *std::move(both);
  }
  return result;
}

StatusOr<Shape> ShapeAtAxis(Shape second, int64_t axis, int64_t rank) {
  if (axis + static_cast<int64_t>(second.size()) > rank) {
    return InvalidArgument(ShapeText(second), " at axis ", axis, " does not broadcast to ", rank, " dimensions");
  }
  second.resize(static_cast<size_t>(rank - axis), 1);
  return second;
}

}  // namespace swizzle
