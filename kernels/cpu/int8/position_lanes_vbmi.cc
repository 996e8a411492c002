#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/base/layout.h"
#include "kernels/cpu/int8/position_lanes.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu {
namespace {

constexpr int kPositions = kPositionUnit;  // of a unit, and dwords of a vector
constexpr int64_t kVector = 64;

struct Square {
  __m512i of[kPositions];
};

// Dword j of vector i becomes dword i of vector j.
SWIZZLE_INLINE Square Transposed(const Square& from) {
  Square pairs, quads, made;
  HWY_UNROLL(8)
  for (int i = 0; i < kPositions; i += 2) {
    pairs.of[i] = _mm512_unpacklo_epi32(from.of[i], from.of[i + 1]);
    pairs.of[i + 1] = _mm512_unpackhi_epi32(from.of[i], from.of[i + 1]);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kPositions; i += 4) {
    quads.of[i] = _mm512_unpacklo_epi64(pairs.of[i], pairs.of[i + 2]);
    quads.of[i + 1] = _mm512_unpackhi_epi64(pairs.of[i], pairs.of[i + 2]);
    quads.of[i + 2] = _mm512_unpacklo_epi64(pairs.of[i + 1], pairs.of[i + 3]);
    quads.of[i + 3] = _mm512_unpackhi_epi64(pairs.of[i + 1], pairs.of[i + 3]);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const __m512i even_ab = _mm512_shuffle_i32x4(quads.of[i], quads.of[4 + i], 0x88);
    const __m512i even_cd = _mm512_shuffle_i32x4(quads.of[8 + i], quads.of[12 + i], 0x88);
    const __m512i odd_ab = _mm512_shuffle_i32x4(quads.of[i], quads.of[4 + i], 0xdd);
    const __m512i odd_cd = _mm512_shuffle_i32x4(quads.of[8 + i], quads.of[12 + i], 0xdd);
    made.of[i] = _mm512_shuffle_i32x4(even_ab, even_cd, 0x88);
    made.of[4 + i] = _mm512_shuffle_i32x4(odd_ab, odd_cd, 0x88);
    made.of[8 + i] = _mm512_shuffle_i32x4(even_ab, even_cd, 0xdd);
    made.of[12 + i] = _mm512_shuffle_i32x4(odd_ab, odd_cd, 0xdd);
  }
  return made;
}

// As StepsOf() in position_cells.cc.
struct Steps {
  SWIZZLE_INLINE Steps(__m512 low, __m512 high) {
    const __m512 range = _mm512_sub_ps(high, low), one = _mm512_set1_ps(1.0f), most = _mm512_set1_ps(255.0f);
    const __mmask16 is_something = _mm512_cmp_ps_mask(range, _mm512_set1_ps(1e-30f), _CMP_GT_OQ);
    scale = _mm512_mask_div_ps(one, is_something, range, most);
    const __m512 steps = _mm512_div_ps(_mm512_sub_ps(_mm512_setzero_ps(), low), scale);
    zero_point = _mm512_min_ps(_mm512_roundscale_ps(steps, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), most);
    inverse = _mm512_div_ps(one, scale);
  }
  SWIZZLE_INLINE __m512i Of(const float* from) const {
    const __m512 step = _mm512_fmadd_ps(_mm512_loadu_ps(from), inverse, zero_point);
    const __m512 held = _mm512_min_ps(_mm512_max_ps(step, _mm512_setzero_ps()), _mm512_set1_ps(255.0f));
    return _mm512_cvtps_epi32(held);
  }

  __m512 scale, inverse, zero_point;
};

SWIZZLE_INLINE Steps StepsOfRows(const float* from, int64_t stride, int64_t rows) {
  __m512 low[4], high[4];
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) low[i] = high[i] = _mm512_setzero_ps();
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, from += 4 * stride) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const __m512 x = _mm512_loadu_ps(from + i * stride);
      low[i] = _mm512_min_ps(low[i], x);
      high[i] = _mm512_max_ps(high[i], x);
    }
  }
  for (; row < rows; ++row, from += stride) {
    low[0] = _mm512_min_ps(low[0], _mm512_loadu_ps(from));
    high[0] = _mm512_max_ps(high[0], _mm512_loadu_ps(from));
  }
  return {_mm512_min_ps(_mm512_min_ps(low[0], low[1]), _mm512_min_ps(low[2], low[3])),
          _mm512_max_ps(_mm512_max_ps(high[0], high[1]), _mm512_max_ps(high[2], high[3]))};
}

// Four rows: bytes of a position beside each other.
SWIZZLE_INLINE __m512i FourRows(const float* from, int64_t stride, int64_t rows, const Steps& steps) {
  const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  __m512i step[4];
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) step[i] = i < rows ? steps.Of(from + i * stride) : _mm512_setzero_si512();
  const __m512i first = _mm512_packs_epi32(step[0], step[1]), second = _mm512_packs_epi32(step[2], step[3]);
  return _mm512_shuffle_epi8(_mm512_packus_epi16(first, second), order);
}

}  // namespace

void QuantiseWindows(const float* from, int64_t stride, int64_t rows, uint8_t* windows, float* scale, float* offset) {
  constexpr int64_t kUnit = LaneWeight::kUnit, kWindow = kPositions * kVector;
  const Steps steps = StepsOfRows(from, stride, rows);
  _mm512_storeu_ps(scale, steps.scale);
  _mm512_storeu_ps(offset, _mm512_mul_ps(steps.scale, steps.zero_point));
  const int64_t count = LaneWeight::WindowsOf(CeilDiv(rows, kUnit));
  for (int64_t row = 0; row < rows; row += kVector, from += kVector * stride) {
    Square bytes;
    for (int64_t i = 0; i < kPositions; ++i) {
      bytes.of[i] = FourRows(from + 4 * i * stride, stride, rows - row - 4 * i, steps);
    }
    const Square positions = Transposed(bytes);
    const int64_t window = row / kUnit;
    uint8_t* const to = windows + window * kWindow;
    HWY_UNROLL(16)
    for (int p = 0; p < kPositions; ++p) {
      const __m256i low = _mm512_castsi512_si256(positions.of[p]);
      const __m256i high = _mm512_extracti64x4_epi64(positions.of[p], 1);
      uint8_t* const at = to + p * kVector;
      if (window < count) _mm512_store_si512(at, positions.of[p]);
      if (window > 0) _mm256_store_si256(reinterpret_cast<__m256i*>(at - kWindow + kUnit), low);
      if (window + 1 < count) _mm256_store_si256(reinterpret_cast<__m256i*>(at + kWindow), high);
    }
  }
}

void MultiplyLanes(const LaneChunk& chunk, const uint8_t* windows, float* products) {
  const LaneStep* step = chunk.steps;
  const uint16_t* window = chunk.windows;
  for (int64_t lane = 0; lane < LaneChunk::kRows; lane += LaneChunk::kLanes) {
    Square sums;
    HWY_UNROLL(16)
    for (int p = 0; p < kPositions; ++p) sums.of[p] = _mm512_setzero_si512();
    for (uint32_t left = chunk.counts[lane / LaneChunk::kLanes]; left != 0; --left, ++step, ++window) {
      const __m512i bytes = _mm512_load_si512(step->bytes.data()), weights = _mm512_load_si512(step->weights.data());
      const uint8_t* const x = windows + *window * (kPositions * kVector);
      HWY_UNROLL(16)
      for (int p = 0; p < kPositions; ++p) {
        const __m512i taken = _mm512_permutexvar_epi8(bytes, vnni::Load(x + p * kVector));
        sums.of[p] = _mm512_dpbusd_epi32(sums.of[p], taken, weights);
      }
    }
    const __m512 scale = _mm512_loadu_ps(chunk.scale + lane);
    HWY_UNROLL(16)
    for (int p = 0; p < kPositions; ++p) {
      sums.of[p] = _mm512_castps_si512(_mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[p]), scale));
    }
    const Square rows = Transposed(sums);
    HWY_UNROLL(16)
    for (int r = 0; r < kPositions; ++r) _mm512_store_si512(products + (lane + r) * kMaxPanelWidth, rows.of[r]);
  }
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI
