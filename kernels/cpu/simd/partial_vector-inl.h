// Loads and stores of the first n lanes that touch no other memory, for the ends of buffers. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_PARTIAL_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_PARTIAL_VECTOR_INL_H_
#undef SWIZZLE_KERNELS_CPU_PARTIAL_VECTOR_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_PARTIAL_VECTOR_INL_H_
#endif

#include <cstring>

#include "hwy/highway.h"

// Before a loop with a constant count over an array of vectors: unrolled, the array lives in registers.
#ifndef SWIZZLE_UNROLL
#define SWIZZLE_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using FloatVector = hn::Vec<FloatTag>;
using FloatMask = hn::Mask<FloatTag>;
inline constexpr int64_t kLanes = hn::MaxLanes(FloatTag());

// Lanes from `count` on are `rest`. REQUIRES: 0 < count <= kLanes.
HWY_INLINE FloatVector LoadFirst(FloatTag d, const float* from, int64_t count, FloatVector rest) {
#if HWY_TARGET == HWY_EMU128
  // This target's masked load reads all lanes.
  HWY_ALIGN float lanes[hn::MaxLanes(FloatTag())];
  hn::Store(rest, d, lanes);
  std::memcpy(lanes, from, count * sizeof(float));
  return hn::Load(d, lanes);
#else
  const auto mask = hn::FirstN(d, static_cast<size_t>(count));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), rest);
#endif
}

// Writes the first `count` lanes. REQUIRES: 0 < count <= kLanes.
HWY_INLINE void StoreFirst(FloatVector vector, FloatTag d, float* to, int64_t count) {
  hn::BlendedStore(vector, hn::FirstN(d, static_cast<size_t>(count)), d, to);
}

// A NaN stays one: Min and Max give what stands second, but for the target of any processor, where that would be the
// bound.
HWY_INLINE FloatVector Clamp(FloatVector vector, FloatVector low, FloatVector high) {
#if HWY_TARGET == HWY_EMU128
  const FloatVector raised = hn::IfThenElse(hn::Lt(vector, low), low, vector);
  return hn::IfThenElse(hn::Gt(raised, high), high, raised);
#else
  return hn::Min(high, hn::Max(low, vector));
#endif
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
