// The bits of numbers of whichever half type. Pure functions.
#ifndef SWIZZLE_KERNELS_BASE_HALF_BITS_H_
#define SWIZZLE_KERNELS_BASE_HALF_BITS_H_

#include <span>

#include "kernels/base/half.h"
#include "kernels/base/real_types.h"

namespace swizzle {

template <DType kHalf>
inline uint16_t HalfBits(float value) {
  static_assert(kHalf == DType::kFloat16 || kHalf == DType::kBFloat16);
  return kHalf == DType::kFloat16 ? HalfOfFloat(value) : Bfloat16OfFloat(value);
}

template <DType kHalf>
inline float FloatOfHalfBits(uint16_t bits) {
  static_assert(kHalf == DType::kFloat16 || kHalf == DType::kBFloat16);
  return kHalf == DType::kFloat16 ? FloatOfHalf(bits) : FloatOfBfloat16(bits);
}

// HalfBits makes the bits of the nearest number; FloatOfHalfBits undoes it. REQUIRES: `dtype` is a half.
inline uint16_t HalfBits(float value, DType dtype) {
  return VisitHalf(dtype, [&]<DType kHalf>() { return HalfBits<kHalf>(value); });
}
inline float FloatOfHalfBits(uint16_t bits, DType dtype) {
  return VisitHalf(dtype, [&]<DType kHalf>() { return FloatOfHalfBits<kHalf>(bits); });
}

// HalfBits of many, with the processor's own conversion where it has one; a NaN may keep more of its bits by it.
// `halves` are as many as `values`, and may begin at any byte.
void StoreHalves(std::span<const float> values, DType dtype, std::byte* halves);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_HALF_BITS_H_
