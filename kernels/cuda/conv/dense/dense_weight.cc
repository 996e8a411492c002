#include "kernels/cuda/conv/dense/dense_weight.h"

#include <cstring>

#include "kernels/base/half_bits.h"

namespace swizzle::cuda {
namespace {

std::vector<std::byte> AsType(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * ElementBytes(dtype));
  if (dtype == DType::kFloat32) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  StoreHalves(values, dtype, bytes.data());
  return bytes;
}

}  // namespace

std::vector<float> ChannelsInnermost(const DenseMatrix& matrix, int64_t taps) {
  std::vector<float> moved(matrix.values.size());
  const int64_t channels = matrix.cols / taps;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const float* const from = matrix.values.data() + row * matrix.cols;
    float* const to = moved.data() + row * matrix.cols;
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) to[tap * channels + channel] = from[channel * taps + tap];
    }
  }
  return moved;
}

StatusOr<std::unique_ptr<PackedWeight>> DenseWeight::Make(const Weight& weight, const Problem& problem,
                                                          const Packing& packing) {
  DenseMatrix matrix = weight.ToDense();
  const int64_t taps = problem.window().taps();
  if (packing.channels_innermost && taps > 1) matrix.values = ChannelsInnermost(matrix, taps);
  std::vector<float> bias = weight.bias;
  if (bias.empty() && packing.always_bias) bias.assign(matrix.rows, 0.0f);
  auto packed = std::make_unique<DenseWeight>();
  SWIZZLE_ASSIGN_OR_RETURN(packed->matrix_, DeviceArray<std::byte>::Upload(AsType(matrix.values, packing.dtype)));
  if (!bias.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(packed->bias_, DeviceArray<std::byte>::Upload(AsType(bias, packing.bias_dtype)));
  }
  return packed;
}

}  // namespace swizzle::cuda
