#include "kernels/cpu/int8/position_sums.h"

#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu {
namespace {

using vnni::BytesFrom;
using vnni::kLanes;
using vnni::StepVectors;

constexpr int64_t kWords = 16;  // of a vector

// Neighbouring channels, and what ends their sums, of all positions.
struct Channels {
  SWIZZLE_INLINE Channels(const PositionSums& of, int64_t first) : inside(BytesFrom(first, of.channels)) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      lanes[j] = static_cast<__mmask16>(inside >> (kWords * j));
      start[j] = _mm512_maskz_loadu_epi32(lanes[j], of.start + first + kWords * j);
      scale[j] = _mm512_maskz_loadu_ps(lanes[j], of.scale + first + kWords * j);
    }
  }
  SWIZZLE_INLINE __m512 Floats(const int32_t* sums, int j) const {
    const __m512i sum = _mm512_maskz_loadu_epi32(lanes[j], sums + kWords * j);
    return _mm512_cvtepi32_ps(_mm512_add_epi32(sum, start[j]));
  }

  __mmask64 inside;
  __mmask16 lanes[4];
  __m512i start[4];
  __m512 scale[4];
};

template <bool kResidual>
void EndChannels(const PositionSums& of, int64_t first, const StepVectors& steps, const uint8_t* residual,
                 uint8_t* to) {
  // Packed, dwords stand transposed.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const Channels channels(of, first);
  const int32_t* sums = of.sums + first;
  for (int64_t position = 0; position < of.positions; ++position, sums += of.channels, to += of.stride) {
    __m512i step[4];
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      __m512 value;
      if constexpr (kResidual) {
        const __m128i bytes = _mm_maskz_loadu_epi8(channels.lanes[j], residual + kWords * j);
        value = _mm512_fmadd_ps(channels.Floats(sums, j), channels.scale[j], steps.residual_offset);
        value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)), steps.residual_scale, value);
      } else {
        value = _mm512_mul_ps(channels.Floats(sums, j), channels.scale[j]);
      }
      step[j] = _mm512_cvtps_epi32(value);
    }
    _mm512_mask_storeu_epi8(to, channels.inside, _mm512_permutexvar_epi32(order, vnni::PackSteps(step, steps)));
    if constexpr (kResidual) residual += of.stride;
  }
}

}  // namespace

void EndInBytes(const PositionSums& of, const OutputSteps& steps, const uint8_t* residual, uint8_t* to) {
  const StepVectors vectors(steps);
  for (int64_t first = 0; first < of.channels; first += kLanes) {
    if (residual == nullptr) {
      EndChannels<false>(of, first, vectors, nullptr, to + first);
    } else {
      EndChannels<true>(of, first, vectors, residual + first, to + first);
    }
  }
}

void EndInReals(const PositionSums& of, const OutputSteps& steps, float* to) {
  const __m512 low = _mm512_set1_ps(steps.real_low), high = _mm512_set1_ps(steps.real_high);
  for (int64_t first = 0; first < of.channels; first += kLanes) {
    const Channels channels(of, first);
    const int32_t* sums = of.sums + first;
    float* row = to + first;
    for (int64_t position = 0; position < of.positions; ++position, sums += of.channels, row += of.stride) {
      HWY_UNROLL(4)
      for (int j = 0; j < 4; ++j) {
        const __m512 value = _mm512_mul_ps(channels.Floats(sums, j), channels.scale[j]);
        _mm512_mask_storeu_ps(row + kWords * j, channels.lanes[j], _mm512_min_ps(_mm512_max_ps(value, low), high));
      }
    }
  }
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI
