#include "kernels/cuda/attention/attention_biases.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace swizzle::cuda {

StatusOr<std::unique_ptr<PackedWeight>> DeviceAttentionBiases::Make(const DenseMatrix& biases,
                                                                    const Attention& attention) {
  auto device = std::make_unique<DeviceAttentionBiases>();
  device->places_ = PairPlacesOf(attention);
  device->distances_ = DistancesAttended(biases, attention);
  const WindowBiases windows = WindowBiasesOf(biases, attention);
  std::vector<float> scaled;
  for (const int64_t first : windows.first_columns) {
    for (int64_t head = 0; head < biases.rows; ++head) {
      const float* const from = biases.values.data() + head * biases.cols + first;
      std::transform(from, from + device->places_.count(), std::back_inserter(scaled), BiasInLog2);
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(device->biases_, DeviceArray<float>::Upload(scaled));
  if (windows.first_columns.size() > 1) {
    SWIZZLE_ASSIGN_OR_RETURN(device->of_window_, DeviceArray<int32_t>::Upload(windows.of_window));
  }
  return device;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareBiasedAttention(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto biases, weight.matrix.In<DenseMatrix>());
  return DeviceAttentionBiases::Make(*biases, problem.attention());
}

}  // namespace swizzle::cuda
