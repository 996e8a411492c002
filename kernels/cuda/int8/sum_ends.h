// What 32-bit sums of a layer become, by rows of its weight: see whole_numbers/steps.h. Plain values; what they point
// to is in device memory.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_SUM_ENDS_H_
#define SWIZZLE_KERNELS_CUDA_INT8_SUM_ENDS_H_

#include <cstdint>

#include "kernels/whole_numbers/steps.h"

namespace swizzle::cuda {

struct SumEnds {
  const int32_t* start = nullptr;
  const float* scale = nullptr;
  const void* residual = nullptr;  // stored as Y, or null
  OutputSteps steps = {};          // where Y is bytes
  DType dtype = DType::kUint8;     // of Y
  Epilogue epilogue = {};          // where Y is real
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_SUM_ENDS_H_
