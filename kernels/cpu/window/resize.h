// Planes made larger or smaller: rows resize_<layout>_f32_<isa> and resize_panels_bf16_<isa>, the nearest or between
// neighbours. Those of bytes are in int8/resize_bytes.h.
//
// In kPanels and kNchw a task is a band of output rows of some channels: rows are mixed first, then columns. What each
// axis takes is worked out once a call, into the workspace. In kBlocked16 every position is a vector.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_RESIZE_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_RESIZE_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

size_t ResizeWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void Resize(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_RESIZE_H_
