#include "kernels/cpu/simd/bfloat16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/simd/bfloat16.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

template <typename From, typename To>
HWY_INLINE void Convert(const From* from, int64_t count, To* to) {
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) StoreAll(LoadAll(from + i), to + i);
  if (whole == count) return;
  const FloatTag d;
  StoreFirst(LoadFirst(d, from + whole, count - whole, hn::Zero(d)), d, to + whole, count - whole);
}

}  // namespace

void Widen(const Bfloat16* from, int64_t count, float* to) { Convert(from, count, to); }
void Round(const float* from, int64_t count, Bfloat16* to) { Convert(from, count, to); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

void Widen(const Bfloat16* from, int64_t count, float* to) {
  static const auto widest = Widest(N_AVX3::Widen, N_AVX2::Widen, N_EMU128::Widen);
  widest(from, count, to);
}

void Round(const float* from, int64_t count, Bfloat16* to) {
  static const auto widest = Widest(N_AVX3::Round, N_AVX2::Round, N_EMU128::Round);
  widest(from, count, to);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
