// What layers whose input is quantised by positions (whole_numbers/position_weight.h) add to products, by rows of their
// weight, in device memory. Immutable.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_POSITION_ENDS_H_
#define SWIZZLE_KERNELS_CUDA_INT8_POSITION_ENDS_H_

#include "kernels/cuda/runtime/device_array.h"
#include "kernels/whole_numbers/position_weight.h"

namespace swizzle::cuda {

// Arrays are filled up by zeros to a multiple of kRowUnit.
class PositionEnds {
 public:
  static constexpr int kRowUnit = 64;

  // input_shift: what was taken off every byte of the input.
  static StatusOr<PositionEnds> Make(const PositionWeight& weight, int32_t input_shift);

  const int32_t* start() const { return start_.data(); }  // of sums, which makes up for the shift
  const float* scale() const { return scale_.data(); }
  const float* bias() const { return bias_.data(); }
  const float* sums() const { return sums_.data(); }
  size_t bytes() const { return start_.bytes() + scale_.bytes() + bias_.bytes() + sums_.bytes(); }

 private:
  DeviceArray<int32_t> start_;
  DeviceArray<float> scale_, bias_, sums_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_POSITION_ENDS_H_
