// bfloat16, the upper half of a float, as activations in kPanels of plans in BF16. Kernels widen it as they load it (a
// shift), compute in FP32 and round to the nearest, ties to even, as they store; a NaN stays one.
//
// A row in bf16 runs the function of the row in f32, which looks at how the problem is stored: what computes is
// compiled once.
#ifndef SWIZZLE_KERNELS_CPU_SIMD_BFLOAT16_H_
#define SWIZZLE_KERNELS_CPU_SIMD_BFLOAT16_H_

#include <cstdint>

#include "kernels/backend/kernel_args.h"
#include "kernels/base/half.h"
#include "kernels/base/real_types.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

using Bfloat16 = uint16_t;

// Whether an activation is bfloat16, else it is FP32.
inline bool IsBfloat16(Storage storage) {
  return VisitHalfOr(
      storage.dtype, [&]<DType kHalf>() { return SWIZZLE_CHECK(kHalf == DType::kBFloat16), true; },
      [&] { return false; });
}

// One element, and back.
inline float FloatOf(float value) { return value; }
inline float FloatOf(Bfloat16 value) { return FloatOfBfloat16(value); }
inline void StoreFloat(float value, float* to) { *to = value; }
inline void StoreFloat(float value, Bfloat16* to) { *to = Bfloat16OfFloat(value); }

// Converts `count` neighbours, on any boundary, with this machine's widest instructions.
void Widen(const Bfloat16* from, int64_t count, float* to);
void Round(const float* from, int64_t count, Bfloat16* to);

// clang-format off
// With each target's.
SWIZZLE_DECLARE_PER_TARGET(
    void Widen(const Bfloat16* from, int64_t count, float* to);
    void Round(const float* from, int64_t count, Bfloat16* to);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_SIMD_BFLOAT16_H_
