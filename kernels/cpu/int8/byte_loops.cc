#include "kernels/cpu/int8/byte_loops.h"

#include <algorithm>

#include "kernels/base/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/byte_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
const hn::Rebind<int32_t, decltype(kFloats)> kWords;
const hn::Rebind<uint8_t, decltype(kFloats)> kBytes;
using Floats = hn::Vec<decltype(kFloats)>;
using Bytes = hn::Vec<decltype(kBytes)>;

// To the nearest step, ties to even. Held first: what is beyond 32 bits has no nearest.
HWY_INLINE hn::Vec<decltype(kWords)> Steps(Floats values) {
  constexpr float kMost = 65536.0f;
  return hn::NearestInt(hn::Min(hn::Max(values, hn::Set(kFloats, -kMost)), hn::Set(kFloats, kMost)));
}

HWY_INLINE Floats FloatsOf(Bytes bytes) { return hn::ConvertTo(kFloats, hn::PromoteTo(kWords, bytes)); }

// Calls run(i) at each whole vector of `count` elements, and copies what is left through vectors of their own.
template <typename From, typename Run>
HWY_INLINE void ForEachVector(const From* from, int64_t count, uint8_t* to, const Run& run) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kFloats));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) run(from + i, to + i);
  if (i == count) return;
  HWY_ALIGN From rest[HWY_MAX_BYTES] = {};
  HWY_ALIGN uint8_t made[HWY_MAX_BYTES];
  std::copy(from + i, from + count, rest);
  run(rest, made);
  std::copy_n(made, count - i, to + i);
}

}  // namespace

void QuantiseRun(const float* from, int64_t count, const Quantised& to_be, uint8_t* to) {
  const auto scale = hn::Set(kFloats, to_be.scale);
  const auto zero_point = hn::Set(kWords, to_be.zero_point);
  ForEachVector(from, count, to, [&](const float* reals, uint8_t* bytes) HWY_ATTR {
    const auto steps = Steps(hn::Div(hn::LoadU(kFloats, reals), scale));
    hn::StoreU(hn::DemoteTo(kBytes, hn::Add(steps, zero_point)), kBytes, bytes);
  });
}

void DequantiseRun(const uint8_t* from, int64_t count, const Quantised& are, float* to) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kFloats));
  const auto scale = hn::Set(kFloats, are.scale);
  const auto zero_point = hn::Set(kFloats, static_cast<float>(are.zero_point));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(hn::Mul(hn::Sub(FloatsOf(hn::LoadU(kBytes, from + i)), zero_point), scale), kFloats, to + i);
  }
  for (; i < count; ++i) to[i] = static_cast<float>(from[i] - are.zero_point) * are.scale;
}

void AddRun(const uint8_t* a, const uint8_t* b, int64_t count, const SumSteps& steps, uint8_t* to) {
  const auto a_scale = hn::Set(kFloats, steps.a_scale), b_scale = hn::Set(kFloats, steps.b_scale);
  const auto offset = hn::Set(kFloats, steps.offset);
  const auto low = hn::Set(kWords, steps.output.low), high = hn::Set(kWords, steps.output.high);
  const auto held = [&](Floats values)
                        HWY_ATTR { return hn::DemoteTo(kBytes, hn::Min(hn::Max(Steps(values), low), high)); };
  const auto lanes = static_cast<int64_t>(hn::Lanes(kFloats));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {  // both are bytes of whole panels: nothing is left
    Floats value = offset;
    if (b != nullptr) value = hn::MulAdd(FloatsOf(hn::LoadU(kBytes, b + i)), b_scale, value);
    value = hn::MulAdd(FloatsOf(hn::LoadU(kBytes, a + i)), a_scale, value);
    hn::StoreU(held(value), kBytes, to + i);
  }
}

void LargestOfRows(const uint8_t* rows, int64_t taps, int64_t stride, const OutputSteps& steps, uint8_t* to) {
  uint8_t largest[kMaxPanelWidth];
  std::copy_n(rows, kMaxPanelWidth, largest);
  for (int64_t tap = 1; tap < taps; ++tap) {
    const uint8_t* const row = rows + tap * stride;
    for (int64_t lane = 0; lane < kMaxPanelWidth; ++lane) largest[lane] = std::max(largest[lane], row[lane]);
  }
  const auto low = static_cast<uint8_t>(steps.low), high = static_cast<uint8_t>(steps.high);
  for (int64_t lane = 0; lane < kMaxPanelWidth; ++lane) to[lane] = std::min(std::max(largest[lane], low), high);
}

int32_t SumRun(const uint8_t* from, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += from[i];
  return sum;
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
