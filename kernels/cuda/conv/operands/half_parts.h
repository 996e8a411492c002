// FP32 weights as FP16 parts, on the host: of each row, all numbers are multiplied by the power of two that brings the
// largest to 2^14, and each is then the sum of two FP16 numbers. tensor_core/operand.cuh does the same on a device, and
// says what that loses. Values.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_HALF_PARTS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_HALF_PARTS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/base/half.h"

namespace swizzle::cuda {

struct HalfParts {
  uint16_t upper, rest;
};

// The power of two of a row all of whose numbers it has seen.
class RowFit {
 public:
  void See(float value) { largest_ = std::max(largest_, std::abs(value)); }
  HalfParts PartsOf(float value) const {
    const float scaled = value * std::bit_cast<float>((268 - Exponent()) << 23);
    const uint16_t upper = HalfOfFloat(scaled);
    return {upper, HalfOfFloat(scaled - FloatOfHalf(upper))};
  }
  float inverse() const { return std::bit_cast<float>((Exponent() - 14) << 23); }

 private:
  // Biased, and kept in a range whose powers of two are normal.
  uint32_t Exponent() const { return std::clamp(std::bit_cast<uint32_t>(largest_) >> 23, 27u, 254u); }

  float largest_ = 0;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_HALF_PARTS_H_
