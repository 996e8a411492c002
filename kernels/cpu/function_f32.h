// Activation functions, fp32: rows function_<layout>_f32_<isa>. They run over whole buffers, padding included, and work
// in place.
#ifndef SWIZZLE_KERNELS_CPU_FUNCTION_F32_H_
#define SWIZZLE_KERNELS_CPU_FUNCTION_F32_H_

#include "kernels/cpu/targets.h"
#include "kernels/kernel_table.h"

namespace swizzle::cpu {

// The padding channels of kBlocked16 hold zeros: the function, clamped, must take zero to zero.
bool FunctionKeepsZero(const Problem& problem);

// clang-format off
SWIZZLE_DECLARE_PER_TARGET(
    void FunctionNchw(const KernelArgs& args, Stream& stream);
    void FunctionPanels(const KernelArgs& args, Stream& stream);
    void FunctionBlocked16(const KernelArgs& args, Stream& stream);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_FUNCTION_F32_H_
