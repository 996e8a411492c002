#include "kernels/cuda/attention/attention_biases.h"

#include <algorithm>
#include <vector>

namespace swizzle::cuda {

StatusOr<std::unique_ptr<PackedWeight>> DeviceAttentionBiases::Make(const DenseMatrix& biases,
                                                                    const Attention& attention) {
  auto device = std::make_unique<DeviceAttentionBiases>();
  device->places_ = PairPlacesOf(attention);
  device->distances_ = DistancesAttended(biases, attention);
  std::vector<float> scaled(biases.values.size());
  std::ranges::transform(biases.values, scaled.begin(), BiasInLog2);
  SWIZZLE_ASSIGN_OR_RETURN(device->biases_, DeviceArray<float>::Upload(scaled));
  return device;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareBiasedAttention(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto biases, weight.matrix.In<DenseMatrix>());
  return DeviceAttentionBiases::Make(*biases, problem.attention());
}

}  // namespace swizzle::cuda
