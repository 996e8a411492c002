// Whole panels become bytes with half the instructions of position_cells.cc, to the same bits: vectors are packed
// instead of narrowed one by one.
#include "kernels/cpu/int8/position_cells.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu::vnni {
namespace {

constexpr int kUnits = RealUnits::kUnits;
static_assert(kUnits * kPositionUnit == kMaxPanelWidth);

// Whether all four units lie beside each other.
bool IsWhole(const ReadUnits& from) {
  for (int unit = 1; unit < kUnits; ++unit) {
    if (from.stride[unit] != from.stride[0] || from.first[unit] != from.first[0] + unit * kPositionUnit) return false;
  }
  return true;
}

// As StepsOf() in position_cells.cc.
SWIZZLE_INLINE void StepsOf(__m512 low, __m512 high, __m512& inverse, __m512& zero_point, float* scales,
                            float* offsets) {
  const __m512 range = _mm512_sub_ps(high, low), one = _mm512_set1_ps(1.0f), most = _mm512_set1_ps(255.0f);
  const __mmask16 is_something = _mm512_cmp_ps_mask(range, _mm512_set1_ps(1e-30f), _CMP_GT_OQ);
  const __m512 scale = _mm512_mask_div_ps(one, is_something, range, most);
  const __m512 steps = _mm512_div_ps(_mm512_sub_ps(_mm512_setzero_ps(), low), scale);
  zero_point = _mm512_min_ps(_mm512_roundscale_ps(steps, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), most);
  inverse = _mm512_div_ps(one, scale);
  _mm512_storeu_ps(scales, scale);
  _mm512_storeu_ps(offsets, _mm512_mul_ps(scale, zero_point));
}

void QuantiseWhole(const float* from, int64_t stride, int64_t rows, uint8_t* to, PositionSteps& steps) {
  __m512 low[kUnits], high[kUnits], inverse[kUnits], zero_point[kUnits];
  HWY_UNROLL(4)
  for (int j = 0; j < kUnits; ++j) low[j] = high[j] = _mm512_setzero_ps();
  for (int64_t row = 0; row < rows; ++row) {
    HWY_UNROLL(4)
    for (int j = 0; j < kUnits; ++j) {
      const __m512 x = _mm512_loadu_ps(from + row * stride + j * kPositionUnit);
      low[j] = _mm512_min_ps(low[j], x);
      high[j] = _mm512_max_ps(high[j], x);
    }
  }
  HWY_UNROLL(4)
  for (int j = 0; j < kUnits; ++j) {
    const int at = j * kPositionUnit;
    StepsOf(low[j], high[j], inverse[j], zero_point[j], steps.scale + at, steps.offset + at);
  }
  const __m512 zero = _mm512_setzero_ps(), most = _mm512_set1_ps(255.0f);
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int64_t row = 0; row < rows; ++row) {
    __m512i whole[kUnits];
    HWY_UNROLL(4)
    for (int j = 0; j < kUnits; ++j) {
      const __m512 x = _mm512_loadu_ps(from + row * stride + j * kPositionUnit);
      const __m512 step = _mm512_fmadd_ps(x, inverse[j], zero_point[j]);
      whole[j] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(step, zero), most));
    }
    // In each 128 bits four positions of each unit.
    const __m512i words = _mm512_packs_epi32(whole[0], whole[1]), more = _mm512_packs_epi32(whole[2], whole[3]);
    const __m512i bytes = _mm512_permutexvar_epi32(in_order, _mm512_packus_epi16(words, more));
    _mm512_store_si512(to + row * kMaxPanelWidth, bytes);
  }
}

void Quantise(const ReadUnits& from, int begin, int end, int64_t rows, uint8_t* bytes, PositionSteps& steps) {
  if (begin != 0 || end != kUnits || !IsWhole(from)) {
    return N_AVX3::kPositionCells.quantise(from, begin, end, rows, bytes, steps);
  }
  QuantiseWhole(from.first[0], from.stride[0], rows, bytes, steps);
}

void Finish(float* products, std::span<const uint32_t> rows, const PanelBytes& output, const RowEnds& ends) {
  N_AVX3::kPositionCells.finish(products, rows, output, ends);
}

}  // namespace

const PositionCells kPositionCells = {.quantise = Quantise, .finish = Finish};

}  // namespace swizzle::cpu::vnni
SWIZZLE_AFTER_VNNI
