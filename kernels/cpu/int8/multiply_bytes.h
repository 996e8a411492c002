// Products of bytes that stand for real numbers: of two activations (rows multiply_<layout>_u8_<isa>), and of an
// activation and one factor per channel and image, squeeze-and-excite (rows scale_<layout>_u8_<isa>). Layouts are
// kFullPanels and kNhwc, and kNchw of two activations.
//
//   y = (a - a_zero) * (b - b_zero) * ratio + y_zero, rounded to the nearest, ties to even, and held to [low, high]
//
// The first product is exact, the ratio a_scale * b_scale / y_scale in single precision: ONNX Runtime's steps.
// Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_MULTIPLY_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_MULTIPLY_BYTES_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

bool AcceptsMultiplyBytes(const Problem& problem);

// clang-format off
SWIZZLE_DECLARE_PER_TARGET(
    void MultiplyBytes(const KernelArgs& args, Stream& stream);
    void ScaleBytes(const KernelArgs& args, Stream& stream);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_MULTIPLY_BYTES_H_
