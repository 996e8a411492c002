// Dense pointwise convolutions of few input channels, fp32: rows conv_pointwise_dense_f32_<isa> (kBlocked16). Some
// positions of two blocks of output channels are summed at once, and what follows the sums is done while these are in
// the first cache: of few input channels that takes as long as the sums, and oneDNN's row does it in a pass of its own.
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_POINTWISE_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_POINTWISE_H_

#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

inline constexpr int64_t kMostPointwiseInputs = 256;  // channels: weights of two blocks then stay in the first cache

// Their weights are prepared by PrepareBlockRows.
bool AcceptsConvPointwise(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void ConvPointwise(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_POINTWISE_H_
