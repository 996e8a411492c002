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

bool AcceptsPool(const Problem& problem);           // no residual
bool AcceptsPoolBlocked16(const Problem& problem);  // nor a clamp that would fill padding channels
size_t PoolWorkspaceBytes(const Problem& problem);  // kPanels and kNchw

SWIZZLE_DECLARE_PER_TARGET(  //
    void MaxPoolPanels(const KernelArgs& args, Stream& stream);
    void MaxPoolNchw(const KernelArgs& args, Stream& stream);
    void MaxPoolBlocked16(const KernelArgs& args, Stream& stream);
    void AveragePoolPanels(const KernelArgs& args, Stream& stream);
    void AveragePoolNchw(const KernelArgs& args, Stream& stream);
    void AveragePoolBlocked16(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_POOL_H_
