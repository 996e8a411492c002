// What layers of bytes have in common: which problems they take, and how their sums begin and end. Immutable.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_BYTE_LAYER_H_
#define SWIZZLE_KERNELS_CUDA_INT8_BYTE_LAYER_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/int8/sum_ends.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cuda {

// Bytes in this layout to bytes or real numbers in the same. Plans give no functions to values that may be whole
// numbers.
bool AcceptsByteLayer(const Problem& problem, Layout layout);

// Starts and scales of rows, in device memory, filled up by zeros to a multiple of kRowUnit.
class RowEnds {
 public:
  static constexpr int kRowUnit = 64;

  // input_shift: what was taken off every element of the input, which rows' starts then make up for.
  static StatusOr<RowEnds> Make(const ByteWeight& weight, int32_t input_shift);

  SumEnds Of(const KernelArgs& args) const;
  size_t bytes() const { return start_.bytes() + scale_.bytes(); }

 private:
  DeviceArray<int32_t> start_;
  DeviceArray<float> scale_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_BYTE_LAYER_H_
