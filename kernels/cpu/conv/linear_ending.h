// How linear layers end that write plain [batch, features] matrices. Pure function.
#ifndef SWIZZLE_KERNELS_CPU_CONV_LINEAR_ENDING_H_
#define SWIZZLE_KERNELS_CPU_CONV_LINEAR_ENDING_H_

#include <cstdint>

#include "kernels/operator/epilogue.h"

namespace swizzle::cpu {

// Output features [begin, end) of one request: adds bias and residual, clamps, applies the function. The residual may
// be null.
void FinishFeatures(const Epilogue& epilogue, const float* bias, const float* residual, int64_t begin, int64_t end,
                    float* row);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_LINEAR_ENDING_H_
