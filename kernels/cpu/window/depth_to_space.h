// Channels that become blocks of positions: rows depth_to_space_<layout>_f32_<isa> and
// depth_to_space_panels_bf16_<isa>. A task is a band of rows of one output channel, made of block^2 channels of the
// input, whose rows are interleaved.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_DEPTH_TO_SPACE_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_DEPTH_TO_SPACE_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

size_t DepthToSpaceWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void DepthToSpace(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_DEPTH_TO_SPACE_H_
