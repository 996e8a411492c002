// The two 16-bit floating-point types as bits, for which C++20 has no type. Pure functions.
#ifndef SWIZZLE_KERNELS_HALF_H_
#define SWIZZLE_KERNELS_HALF_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace swizzle {

// IEEE 754 binary16; exact.
inline float FloatOfHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu, mantissa = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(mantissa), -24), std::bit_cast<float>(sign));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// bfloat16, the upper half of a float; exact.
inline float FloatOfBfloat16(uint16_t bfloat) { return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16); }

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_HALF_H_
