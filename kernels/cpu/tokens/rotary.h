// Rotary position embedding of packed token sequences: rows rotary_<layout>_dense_f32_<isa>, kPanels and kNchw, and
// rotary_panels_dense_bf16_<isa>.
//
// In kPanels sixteen tokens' rows of the table are turned once, a block of pairs at a time, for all heads. What is not
// turned is copied, unless the output is the input.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_ROTARY_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_ROTARY_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareRotary(const Weight& weight, const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void Rotary(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_ROTARY_H_
