#include "kernels/cpu/simd/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/transpose.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  TransposeHere(from, from_stride, to, to_stride, rows, columns);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  static const auto widest = Widest(N_AVX3::Transpose, N_AVX2::Transpose, N_EMU128::Transpose);
  widest(from, from_stride, to, to_stride, rows, columns);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
