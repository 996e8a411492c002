#include "model_loader/pack/input_arrays.h"

#include <cstring>

#include "kernels/base/dtype_row.h"
#include "model_loader/plan/run/token_packing.h"

namespace swizzle::pack {

StatusOr<int64_t> BatchOf(const NpyArrays& arrays, const Network& network) {
  if (network.batch_size > 0) return network.batch_size;
  const Shape& shape = arrays.at(network.inputs[0].name).shape;
  if (shape.empty() || shape[0] < 1) {
    return InvalidArgument("input '", network.inputs[0].name, "' is ", ShapeText(shape),
                           "; its first dimension, the batch, must be at least 1");
  }
  return shape[0];
}

StatusOr<int64_t> LengthOf(const NpyArrays& arrays, const Network& network) {
  if (!network.sequences || network.sequences->length > 0) return 0;
  const Shape& shape = arrays.at(network.inputs[0].name).shape;
  const int64_t positions = network.LookupLimit(-1);
  if (shape.size() == 2 && shape[1] >= 1 && (positions == 0 || shape[1] <= positions)) return shape[1];
  return InvalidArgument("input '", network.inputs[0].name, "' is ", ShapeText(shape), "; it must be [batch, length]",
                         positions == 0 ? "" : Concat(", of at most ", positions, " tokens"));
}

StatusOr<std::vector<float>> Floats(const NpyArray& array, const NetworkPort& port, const Shape& shape) {
  if (array.dtype != port.dtype) {
    return InvalidArgument("input '", port.name, "' is ", DTypeName(array.dtype), "; save array.astype('",
                           RowOf(port.dtype).npy, "')");
  }
  if (array.shape != shape) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(array.shape), "; it must be ", ShapeText(shape));
  }
  std::vector<float> floats(array.bytes.size() / ElementBytes(array.dtype));
  const TensorView view{array.dtype, array.shape, array.bytes};
  if (array.dtype == DType::kFloat32) {
    std::memcpy(floats.data(), array.bytes.data(), array.bytes.size());
  } else if (array.dtype == DType::kUint8) {
    std::ranges::transform(array.bytes, floats.begin(), [](std::byte x) { return static_cast<float>(x); });
  } else {
    for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(WholeAt(view, static_cast<int64_t>(i)));
  }
  return floats;
}

Status CheckRange(const NetworkRunner& runner, int i, const std::vector<float>& elements) {
  const int64_t limit = runner.IsMask(i) ? 2 : runner.IdLimit(i);
  const auto outside = [&](float x) { return x < 0 || x >= static_cast<float>(limit); };
  const auto found = std::find_if(elements.begin(), elements.end(), outside);
  if (limit == 0 || found == elements.end()) return {};
  return InvalidArgument("input '", runner.inputs()[i].name, "' holds ", *found, " at element ",
                         found - elements.begin(), "; it must be from 0 to ", limit - 1);
}

}  // namespace swizzle::pack
