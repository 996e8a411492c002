#include "kernels/cpu/int8/byte_loops.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/byte_loops.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Rounds to the nearest, ties to even: numbers below 2^22 lose what is behind the point beside 1.5 * 2^23.
HWY_INLINE int32_t RoundedByte(float value) {
  constexpr float kShift = 12582912.0f;
  const float held = std::min(std::max(value, -1024.0f), 1024.0f);
  return static_cast<int32_t>((held + kShift) - kShift);
}

HWY_INLINE uint8_t Held(int32_t step, int32_t low, int32_t high) {
  return static_cast<uint8_t>(std::min(std::max(step, low), high));
}

}  // namespace

void QuantiseRun(const float* HWY_RESTRICT from, int64_t count, const Quantised& to_be, uint8_t* HWY_RESTRICT to) {
  const float scale = to_be.scale;
  const int32_t zero_point = to_be.zero_point;
  for (int64_t i = 0; i < count; ++i) to[i] = Held(RoundedByte(from[i] / scale) + zero_point, 0, 255);
}

void DequantiseRun(const uint8_t* HWY_RESTRICT from, int64_t count, const Quantised& are, float* HWY_RESTRICT to) {
  const float scale = are.scale;
  const int32_t zero_point = are.zero_point;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i] - zero_point) * scale;
}

void AddRun(const uint8_t* a, const uint8_t* b, int64_t count, const SumSteps& steps, uint8_t* to) {
  const float a_scale = steps.a_scale, b_scale = steps.b_scale, offset = steps.offset;
  const int32_t low = steps.output.low, high = steps.output.high;
  constexpr int64_t kBlock = 64;  // in memory of its own: the compiler need not ask whether operands overlap
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    float values[kBlock];
    for (int64_t i = 0; i < block; ++i) {
      const float value = b == nullptr ? offset : std::fma(static_cast<float>(b[begin + i]), b_scale, offset);
      values[i] = std::fma(static_cast<float>(a[begin + i]), a_scale, value);
    }
    for (int64_t i = 0; i < block; ++i) to[begin + i] = Held(RoundedByte(values[i]), low, high);
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
