// Element-wise ops, fp32: rows add_<layout>_f32_<isa>, multiply_<layout>_f32_<isa> and activation_<layout>_f32_<isa>,
// and of panels likewise bf16. They run over whole buffers, padding included, and work in place.
#ifndef SWIZZLE_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
#define SWIZZLE_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// The padding channels of kBlocked16 hold zeros: the clamp must leave a zero alone.
bool ClampKeepsZero(const Problem& problem);

// Whether the epilogue leaves the padding of this problem's layout alone, if it has any.
bool AcceptsElementwise(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void Add(const KernelArgs& args, Stream& stream);
                           void Multiply(const KernelArgs& args, Stream& stream);
                           void Activation(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_ELEMENTWISE_ELEMENTWISE_H_
