// Vectors of activations in memory, FP32 or bfloat16: kLanes of either are a FloatVector. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_ELEMENTS_INL_H_
#undef SWIZZLE_KERNELS_CPU_ELEMENTS_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_ELEMENTS_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/cpu/simd/bfloat16.h"
#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

using BitsTag = hn::RebindToUnsigned<FloatTag>;
using HalfTag = hn::Rebind<Bfloat16, FloatTag>;
using HalfVector = hn::Vec<HalfTag>;

HWY_INLINE FloatVector Widened(HalfVector halves) {
  return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(BitsTag(), halves)));
}

HWY_INLINE HalfVector Rounded(FloatVector vector) {
  const BitsTag d;
  const auto bits = hn::BitCast(d, vector);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto nearest = hn::BitCast(FloatTag(), hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFF))));
  // Of a NaN the sum might be anything.
  const FloatVector quiet = hn::BitCast(FloatTag(), hn::Or(bits, hn::Set(d, 0x400000)));
  const FloatVector rounded = hn::IfThenElse(hn::IsNaN(vector), quiet, nearest);
#if HWY_TARGET == HWY_AVX3
  alignas(64) static constexpr uint16_t kUpperHalves[32] = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  const __m512i halves = _mm512_load_si512(kUpperHalves);
  return HalfVector{_mm512_castsi512_si256(_mm512_permutexvar_epi16(halves, hn::BitCast(d, rounded).raw))};
#else
  const hn::RebindToSigned<FloatTag> di;
  return hn::DemoteTo(HalfTag(), hn::BitCast(di, hn::ShiftRight<16>(hn::BitCast(d, rounded))));
#endif
}

// All lanes, on any boundary.
HWY_INLINE FloatVector LoadAll(const float* from) { return hn::LoadU(FloatTag(), from); }
HWY_INLINE FloatVector LoadAll(const Bfloat16* from) { return Widened(hn::LoadU(HalfTag(), from)); }
HWY_INLINE void StoreAll(FloatVector vector, float* to) { hn::StoreU(vector, FloatTag(), to); }
HWY_INLINE void StoreAll(FloatVector vector, Bfloat16* to) { hn::StoreU(Rounded(vector), HalfTag(), to); }

// As LoadFirst and StoreFirst of floats.
HWY_INLINE FloatVector LoadFirst(FloatTag, const Bfloat16* from, int64_t count, FloatVector rest) {
  HWY_ALIGN Bfloat16 lanes[kLanes];
  hn::Store(Rounded(rest), HalfTag(), lanes);
  std::memcpy(lanes, from, count * sizeof(Bfloat16));
  return Widened(hn::Load(HalfTag(), lanes));
}
HWY_INLINE void StoreFirst(FloatVector vector, FloatTag, Bfloat16* to, int64_t count) {
  HWY_ALIGN Bfloat16 lanes[kLanes];
  hn::Store(Rounded(vector), HalfTag(), lanes);
  std::memcpy(to, lanes, count * sizeof(Bfloat16));
}

// The next `count` lanes on any boundary, or all of them where there are more; lanes from `count` on are `rest`.
// REQUIRES: 0 < count.
template <typename T>
HWY_INLINE FloatVector LoadSome(const T* from, int64_t count, FloatVector rest) {
  return count >= kLanes ? LoadAll(from) : LoadFirst(FloatTag(), from, count, rest);
}
template <typename T>
HWY_INLINE FloatVector LoadSome(const T* from, int64_t count) {
  return LoadSome(from, count, hn::Zero(FloatTag()));
}
template <typename T>
HWY_INLINE void StoreSome(FloatVector vector, T* to, int64_t count) {
  if (count >= kLanes) return StoreAll(vector, to);
  StoreFirst(vector, FloatTag(), to, count);
}

// 2 * kLanes neighbours, on any boundary: those at even and at odd places.
HWY_INLINE void LoadPairs(const float* from, FloatVector& even, FloatVector& odd) {
  const FloatVector low = LoadAll(from), high = LoadAll(from + kLanes);
  even = hn::ConcatEven(FloatTag(), high, low);
  odd = hn::ConcatOdd(FloatTag(), high, low);
}
HWY_INLINE void LoadPairs(const Bfloat16* from, FloatVector& even, FloatVector& odd) {
  const BitsTag d;
  const auto pairs = hn::BitCast(d, hn::LoadU(hn::Repartition<Bfloat16, BitsTag>(), from));
  even = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
  odd = hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(d, 0xFFFF0000u)));
}

#if HWY_TARGET == HWY_AVX3

// Lanes that the mask lacks are zero and are not read.
HWY_INLINE FloatVector MaskedLoad(FloatMask mask, const float* from) { return hn::MaskedLoad(mask, FloatTag(), from); }
HWY_INLINE FloatVector MaskedLoad(FloatMask mask, const Bfloat16* from) {
  return Widened(HalfVector{_mm256_maskz_loadu_epi16(mask.raw, from)});
}

#endif

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
