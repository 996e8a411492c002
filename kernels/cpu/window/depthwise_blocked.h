// Depthwise convolution of FP32 in blocks of 16 channels: rows depthwise_blocked16_dense_f32_<isa> (kBlocked16), any
// window. Channels are lanes, and up to eight output columns are summed side by side. Windows 3 and 5 wide of stride 1
// and 2 have loops of their own, which load an input once a row of the window for all columns that read it.
//
// The threads share the rows of the output, as neighbours in this layout share positions, so that each reads what it
// wrote itself: oneDNN's row shares channels, and where no cache is shared the lines then come from the other thread's.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_BLOCKED_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_BLOCKED_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// Its weights are prepared by PrepareBlockRows.
bool AcceptsDepthwiseBlocked(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void DepthwiseBlocked(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_DEPTHWISE_BLOCKED_H_
