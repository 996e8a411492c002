// What a model says of whole numbers that a weight or an activation may be stored as: a type, and a scale and a zero
// point (quantised.h) of the tensor or of each of its channels. Value type.
//
// Channels are a weight's rows, and an activation's channels. What the numbers stand for is what the model computes
// with: kernels in real numbers need none of this.
//
// Invariant (Validate): the type is INT8 or UINT8; there are as many scales as channels, or one, finite and above 0;
// there are as many zero points as scales, or none, which are zeros, and each is of the type.
#ifndef SWIZZLE_KERNELS_BASE_QUANTISATION_H_
#define SWIZZLE_KERNELS_BASE_QUANTISATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/base/quantised.h"
#include "kernels/base/status.h"

namespace swizzle {

struct Quantisation {
  DType dtype = DType::kInt8;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;

  // INVALID_ARGUMENT naming what breaks the invariant for a tensor of so many channels.
  Status Validate(int64_t channels) const;
  bool per_tensor() const { return scales.size() == 1; }
  // Nothing where channels differ in it.
  std::optional<int32_t> common_zero_point() const;
  // REQUIRES: Validate() is OK.
  Quantised Of(int64_t channel) const;
  bool operator==(const Quantisation&) const = default;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_QUANTISATION_H_
