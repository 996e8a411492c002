// What one layer computes at one batch size: its operator and extents. Plain values.
#ifndef SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_
#define SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_

#include <cstdint>

#include "kernels/base/dtype.h"
#include "kernels/base/layout.h"
#include "kernels/operator/operator.h"

namespace swizzle {

// The type of elements in this layout: kNchw and kBlocked16 are always in FP32.
constexpr DType ElementType(Layout layout, DType precision) {
  return layout == Layout::kNchw || layout == Layout::kBlocked16 ? DType::kFloat32 : precision;
}

struct Problem : Operator {
  Extent input;
  Extent output;
  int threads = 1;                // of the stream it will run on
  int blocking = 0;               // of the weight, of Kernel::blockings
  DType dtype = DType::kFloat32;  // of activations (ElementType), the plan's precision; sums are in FP32 always
};

inline constexpr int kMaxKernelInputs = 3;

// Channels of q, and of k, in an attention: those of v are the output's.
inline int64_t KeyChannels(const Problem& problem) {
  const bool packed = problem.attention().packed;
  return packed ? (problem.input.channels - problem.output.channels) / 2 : problem.input.channels;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_
