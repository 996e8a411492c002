// Kernels that compute in FP32 alone, over kPanels in bfloat16: operands are widened into the workspace, the kernel
// runs on them, and its output is rounded. For attention, where a pass over operands is small beside the work.
#ifndef SWIZZLE_KERNELS_CPU_SIMD_WIDENED_H_
#define SWIZZLE_KERNELS_CPU_SIMD_WIDENED_H_

#include <cstddef>

#include "kernels/cpu/simd/bfloat16.h"

namespace swizzle::cpu {

// What widened operands and the output take, a multiple of kBufferAlignment; the kernel's own workspace comes on top.
// REQUIRES: IsAttention(problem.op).
size_t WidenedBytes(const Problem& problem);

// REQUIRES: the workspace is that much larger than `run` needs.
void RunWidened(const KernelArgs& args, Stream& stream, void (*run)(const KernelArgs&, Stream&));

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_SIMD_WIDENED_H_
