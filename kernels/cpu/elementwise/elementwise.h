// Element-wise ops, fp32: rows add_<layout>_f32_<isa>, multiply_<layout>_f32_<isa> and activation_<layout>_f32_<isa>,
// and of panels likewise bf16. They run over whole buffers, padding included, and work in place.
#ifndef SWIZZLE_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
#define SWIZZLE_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// The padding channels of kBlocked16 hold zeros: the clamp must leave a zero alone.
bool ClampKeepsZero(const Problem& problem);

// clang-format off
SWIZZLE_DECLARE_PER_TARGET(
    void AddNchw(const KernelArgs& args, Stream& stream);
    void AddPanels(const KernelArgs& args, Stream& stream);
    void AddBlocked16(const KernelArgs& args, Stream& stream);
    void MultiplyNchw(const KernelArgs& args, Stream& stream);
    void MultiplyPanels(const KernelArgs& args, Stream& stream);
    void MultiplyBlocked16(const KernelArgs& args, Stream& stream);
    void ActivationNchw(const KernelArgs& args, Stream& stream);
    void ActivationPanels(const KernelArgs& args, Stream& stream);
    void ActivationBlocked16(const KernelArgs& args, Stream& stream);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
