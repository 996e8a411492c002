// Biases of pairs of places (Op::kBiasedAttention) in device memory.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_BIASES_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_BIASES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/operator/pair_biases.h"

namespace swizzle::cuda {

// Immutable. Lives on the device that was current when it was made.
class DeviceAttentionBiases final : public PackedWeight {
 public:
  // `biases` is a valid weight of a layer with these attributes.
  static StatusOr<std::unique_ptr<PackedWeight>> Make(const DenseMatrix& biases, const Attention& attention);

  // [heads][places().count()], in units of log(2), once for all windows that differ.
  const float* data() const { return biases_.data(); }
  const PairPlaces& places() const { return places_; }
  // [windows]: which of the biases in data() is a window's; null where there is one.
  const int32_t* of_window() const { return of_window_.size() == 0 ? nullptr : of_window_.data(); }
  const DistanceRange& distances() const { return distances_; }
  size_t bytes() const override { return biases_.bytes() + of_window_.bytes(); }

 private:
  PairPlaces places_;
  DistanceRange distances_;
  DeviceArray<float> biases_;
  DeviceArray<int32_t> of_window_;
};

StatusOr<std::unique_ptr<PackedWeight>> PrepareBiasedAttention(const Weight& weight, const Problem& problem);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_BIASES_H_
