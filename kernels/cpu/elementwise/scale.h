// One factor per channel and image, fp32: rows scale_<layout>_f32_<isa>, and scale_panels_bf16_<isa>. inputs[1] is
// [batch, channels, 1, 1] in the same layout as inputs[0].
#ifndef SWIZZLE_KERNELS_CPU_ELEMENTWISE_SCALE_H_
#define SWIZZLE_KERNELS_CPU_ELEMENTWISE_SCALE_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

SWIZZLE_DECLARE_PER_TARGET(void Scale(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_ELEMENTWISE_SCALE_H_
