// What follows a library's product where the library cannot do it itself: one more pass over the output, in the
// problem's element type, 16 bytes at a time.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_DENSE_DENSE_EPILOGUE_H_
#define SWIZZLE_KERNELS_CUDA_CONV_DENSE_DENSE_EPILOGUE_H_

#include <limits>

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// output = function(clamp(output)), for all its elements in kNhwc, perhaps with a pitch.
void FinishOutput(const KernelArgs& args, Stream& stream);
// output = function(clamp(sums)) likewise, of sums without a pitch. REQUIRES: the output has one.
void FinishSums(const KernelArgs& args, const void* sums, Stream& stream);

// output = function(clamp(output + bias + residual)) in kRows, spare positions included; `bias` is one fp32 number a
// row, or null.
void FinishRows(const KernelArgs& args, const float* bias, Stream& stream);

// Of FP16 parts: what undoes their scales. Device memory.
struct PartEnds {
  const float *bias, *channel_inverses;  // [channels]
  const float* position_inverses;        // [positions]
};
// output = function(clamp(output * inverses + bias + residual)) in FP32 and kNhwc.
void FinishParts(const KernelArgs& args, const PartEnds& ends, Stream& stream);

// Whether the clamp is max(x, 0), which libraries have.
inline bool IsRelu(const Epilogue& epilogue) {
  return epilogue.low == 0 && epilogue.high == std::numeric_limits<float>::infinity();
}

// Whether FinishOutput is needed where a library has added the bias and the residual, and done IsRelu.
inline bool NeedsFinish(const Epilogue& epilogue) {
  return epilogue.function || (epilogue.Clamps() && !IsRelu(epilogue));
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_DENSE_DENSE_EPILOGUE_H_
