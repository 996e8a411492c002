// Exponentials, in fewer instructions than an exact library's. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_SIMD_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_SIMD_EXPONENTIAL_INL_H_
#undef SWIZZLE_KERNELS_CPU_SIMD_EXPONENTIAL_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_SIMD_EXPONENTIAL_INL_H_
#endif

#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

inline constexpr float kLog2E = 1.44269504f;
// 3 * 2^22: what is added to it is rounded to a whole number, which then stands in the lowest bits.
inline constexpr float kShift = 12582912.0f;

// 2^rest * 2^whole for a rest of half a step either way; `shifted` is `whole` plus kShift.
HWY_INLINE FloatVector ScaledPower(FloatVector rest, FloatVector shifted) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> bits;
  // The least relative error over half a step either way, by a fit of our own: 1.1e-7.
  FloatVector result = hn::Set(d, 0.00132647273f);
  result = hn::MulAdd(result, rest, hn::Set(d, 0.00967151299f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.0555073358f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.240222424f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.693147004f));
  result = hn::MulAdd(result, rest, hn::Set(d, 1.0f));
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, result), hn::ShiftLeft<23>(hn::BitCast(bits, shifted))));
}

// 2^x for x <= 127, to 3e-7 relative; 0 from -127 down, where FP32 runs out, and any number below 2^-125 near there. Of
// a NaN anything.
HWY_INLINE FloatVector PowerOfTwo(FloatVector x) {
  const FloatTag d;
  const FloatVector bounded = hn::Max(hn::Set(d, -127.0f), x);
  const FloatVector shift = hn::Set(d, kShift);
  const FloatVector shifted = hn::Add(bounded, shift);
  return ScaledPower(hn::Sub(bounded, hn::Sub(shifted, shift)), shifted);
}

// e^x for x <= 88, to 3e-7 relative; 0 below -87, where FP32 runs out. Of a NaN anything.
HWY_INLINE FloatVector Exp(FloatVector x) {
  constexpr float kLog2 = 0.693145752f, kLog2Beyond = 1.42860677e-6f;  // its first bits, times which is exact; the rest
  const FloatTag d;
  const FloatVector least = hn::Set(d, -87.0f);
  const FloatVector bounded = hn::Max(least, x), log2e = hn::Set(d, kLog2E), shift = hn::Set(d, kShift);
  const FloatVector shifted = hn::MulAdd(bounded, log2e, shift);
  const FloatVector whole = hn::Sub(shifted, shift);
  FloatVector rest = hn::NegMulAdd(whole, hn::Set(d, kLog2), bounded);
  rest = hn::Mul(hn::NegMulAdd(whole, hn::Set(d, kLog2Beyond), rest), log2e);
  return hn::IfThenElseZero(hn::Ge(x, least), ScaledPower(rest, shifted));
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
