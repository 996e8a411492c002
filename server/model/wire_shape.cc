#include "server/model/wire_shape.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "server/model/reshaped_dims.h"

namespace swizzle {

Shape WireDims(const ModelSpec& spec, const TensorSpec& tensor) {
  Shape dims = tensor.wire_dims();
  if (BatchDims(spec) > 0) dims.insert(dims.begin(), -1);
  return dims;
}

bool ShapeFits(const ModelSpec& spec, const TensorSpec& tensor, const Shape& shape) {
  const size_t leading = BatchDims(spec);
  if (shape.size() < leading) return false;
  return std::ranges::equal(std::span(shape).subspan(leading), tensor.wire_dims(), [](int64_t actual, int64_t wanted) {
    return wanted == -1 ? actual >= 0 : actual == wanted;
  });
}

Shape ModelShape(const ModelSpec& spec, const TensorSpec& input, const Shape& shape) {
  return input.reshaped ? Reshaped(shape, BatchDims(spec), *input.reshaped, input.dims) : shape;
}

Shape WireShape(const ModelSpec& spec, const TensorSpec& output, const Shape& shape) {
  if (!output.reshaped || shape.size() != BatchDims(spec) + output.dims.size()) return shape;
  Shape reshaped = Reshaped(shape, BatchDims(spec), output.dims, *output.reshaped);
  const StatusOr<int64_t> elements = ElementCount(shape), its = ElementCount(reshaped);
  return elements.ok() && its.ok() && *elements == *its ? reshaped : shape;
}

}  // namespace swizzle
