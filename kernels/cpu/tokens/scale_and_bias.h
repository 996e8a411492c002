// The weight of a layer normalisation as its kernels read it. Immutable.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_SCALE_AND_BIAS_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_SCALE_AND_BIAS_H_

#include <vector>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

class ScaleAndBias final : public PackedWeight {
 public:
  explicit ScaleAndBias(const Weight& weight) : scale_(weight.ToDense().values), bias_(weight.bias) {
    bias_.resize(scale_.size(), 0.0f);
  }
  size_t bytes() const override { return (scale_.size() + bias_.size()) * sizeof(float); }
  const float* scale() const { return scale_.data(); }  // [channels]
  const float* bias() const { return bias_.data(); }    // [channels]; zeros where the layer has none

 private:
  std::vector<float> scale_;
  std::vector<float> bias_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_SCALE_AND_BIAS_H_
