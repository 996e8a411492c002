// A vector that is to stay in a register. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_IN_REGISTER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_IN_REGISTER_INL_H_
#undef SWIZZLE_KERNELS_CPU_IN_REGISTER_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_IN_REGISTER_INL_H_
#endif

#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Hides where a value comes from: the compiler would else load it for every use, and loads are what there is least of.
HWY_INLINE FloatVector InRegister(FloatVector vector) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  asm("" : "+v"(vector.raw));
#endif
  return vector;
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
