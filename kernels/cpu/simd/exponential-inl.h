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

// 2^x for x <= 127, to 3e-7 relative; 0 from -127 down, where FP32 runs out, and any number below 2^-125 near there. Of
// a NaN anything.
HWY_INLINE FloatVector PowerOfTwo(FloatVector x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> bits;
  const FloatVector bounded = hn::Max(hn::Set(d, -127.0f), x);
  // Adding 3 * 2^22 rounds to a whole number and leaves it in the lowest bits.
  const FloatVector magic = hn::Set(d, 12582912.0f);
  const FloatVector power = hn::Add(bounded, magic);
  const FloatVector rest = hn::Sub(bounded, hn::Sub(power, magic));
  // The least relative error over half a step either way, by a fit of our own: 1.1e-7.
  FloatVector result = hn::Set(d, 0.00132647273f);
  result = hn::MulAdd(result, rest, hn::Set(d, 0.00967151299f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.0555073358f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.240222424f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.693147004f));
  result = hn::MulAdd(result, rest, hn::Set(d, 1.0f));
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, result), hn::ShiftLeft<23>(hn::BitCast(bits, power))));
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
