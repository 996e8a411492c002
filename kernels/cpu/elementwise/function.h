// Activation functions, fp32: rows function_<layout>_f32_<isa> and function_panels_bf16_<isa>. They run over whole
// buffers, padding included, and work in place.
#ifndef SWIZZLE_KERNELS_CPU_ELEMENTWISE_FUNCTION_H_
#define SWIZZLE_KERNELS_CPU_ELEMENTWISE_FUNCTION_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// The padding channels of kBlocked16 hold zeros: there the function, clamped, must take zero to zero.
bool AcceptsFunction(const Problem& problem);
// Whether an epilogue does.
bool EpilogueKeepsZero(const Problem& problem);

// What epilogues with a function end with, in place, on the calling thread; of this machine's widest instructions, and
// of each target's.
void ApplyFunction(const Function& function, float* values, int64_t count);

SWIZZLE_DECLARE_PER_TARGET(void ApplyFunction(const Function& function, float* values, int64_t count);
                           void RunFunction(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_ELEMENTWISE_FUNCTION_H_
