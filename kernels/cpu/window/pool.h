// Max and average pooling, fp32: rows max_pool_<layout>_f32_<isa> and average_pool_<layout>_f32_<isa>, any window;
// of panels likewise bf16.
//
// kPanels and kNchw walk tiles (window_tiles.h), except that a window of the whole plane is a plain sum or maximum over
// it. kBlocked16 is vectorised over channels.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_POOL_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_POOL_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

bool AcceptsPool(const Problem& problem);  // no residual; in kBlocked16 no clamp that would fill padding channels
size_t PoolWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void MaxPool(const KernelArgs& args, Stream& stream);
                           void AveragePool(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_POOL_H_
