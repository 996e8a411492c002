// A window's column is widened to 16 bits, two rows at a time, which a product with their taps adds: exact. As with
// VNNI, a column is added to all windows that it is in where these are next to each other.
#include <immintrin.h>

#include <utility>

#include "hwy/base.h"
#include "kernels/cpu/int8/nhwc_cells.h"

#define SWIZZLE_INLINE inline __attribute__((always_inline))

HWY_PUSH_ATTRIBUTES("avx,avx2,fma")
namespace swizzle::cpu {
namespace {

constexpr int kChannels = 16;  // at once
constexpr int kPair = 2;

// Of 16 channels: dword 4 l + i of vector j is channel 8 l + 4 j + i.
struct PairSums {
  __m256i of[2];
};

SWIZZLE_INLINE const __m256i* Vectors(const void* from) { return static_cast<const __m256i*>(from); }

SWIZZLE_INLINE PairSums StartOf(const NhwcTaps& taps) {
  return {{_mm256_load_si256(Vectors(taps.start)), _mm256_load_si256(Vectors(taps.start) + 1)}};
}

// Two rows of a column, from row `first` of the window on.
SWIZZLE_INLINE PairSums LoadPair(const NhwcRow& row, int64_t x, int64_t first) {
  const bool is_inside = x >= 0 && x < row.width;
  const auto load = [&](int64_t tap) __attribute__((always_inline, target("avx,avx2,fma"))) {
    const uint8_t* const from = is_inside ? row.rows[tap] + x * row.steps[tap] : row.outside;
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  };
  const __m256i a = load(first);
  const __m256i b = first + 1 < row.window.kernel_h ? load(first + 1) : _mm256_setzero_si256();
  return {{_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)}};
}

SWIZZLE_INLINE void AddPairs(const PairSums& x, const int32_t* pairs, PairSums& sums) {
  HWY_UNROLL(2)
  for (int j = 0; j < 2; ++j) {
    const __m256i products = _mm256_madd_epi16(x.of[j], _mm256_load_si256(Vectors(pairs) + j));
    sums.of[j] = _mm256_add_epi32(sums.of[j], products);
  }
}

SWIZZLE_INLINE void StoreSums(const PairSums& sums, const NhwcTaps& taps, const OutputSteps& steps, uint8_t* to) {
  __m256i step[2];
  HWY_UNROLL(2)
  for (int j = 0; j < 2; ++j) {
    const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(sums.of[j]), _mm256_load_ps(taps.scale + int64_t{8} * j));
    step[j] = _mm256_cvtps_epi32(value);
  }
  const __m256i zero_point = _mm256_set1_epi16(static_cast<int16_t>(steps.zero_point));
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(step[0], step[1]), zero_point);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
  const __m128i low = _mm_set1_epi8(static_cast<char>(steps.low)), high = _mm_set1_epi8(static_cast<char>(steps.high));
  const __m128i bytes = _mm_min_epu8(_mm_max_epu8(_mm256_castsi256_si128(packed), low), high);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

// Windows next to each other: of the one that begins at column c the sums are those of index c % kColumns.
template <int kColumns, int... kPhases>
SWIZZLE_INLINE void Slide(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps,
                          std::integer_sequence<int, kPhases...>) {
  const int64_t row_pairs = (row.window.kernel_h + 1) / kPair;
  PairSums sums[kColumns];
  HWY_UNROLL(3)
  for (int i = 0; i < kColumns; ++i) sums[i] = StartOf(taps);
  uint8_t* to = row.output;
  const int64_t end = row.output_width + kColumns - 1;
  const auto add = [&](auto phase, int64_t column) __attribute__((always_inline, target("avx,avx2,fma"))) {
    constexpr int kPhase = decltype(phase)::value, kEnds = (kPhase + 1) % kColumns;
    if (column >= end) return;
    for (int64_t pair = 0; pair < row_pairs; ++pair) {
      const PairSums x = LoadPair(row, column - row.window.pad_left, pair * kPair);
      HWY_UNROLL(3)
      for (int i = 0; i < kColumns; ++i) {
        AddPairs(x, taps.quads + (i * row_pairs + pair) * kChannels, sums[(kPhase + kColumns - i) % kColumns]);
      }
    }
    if (column >= kColumns - 1) {
      StoreSums(sums[kEnds], taps, steps, to);
      to += row.output_step;
    }
    sums[kEnds] = StartOf(taps);
  };
  for (int64_t column = 0; column < end; column += kColumns) {
    (add(std::integral_constant<int, kPhases>(), column + kPhases), ...);
  }
}

void SumEach(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps) {
  const Window& window = row.window;
  uint8_t* to = row.output;
  for (int64_t position = 0; position < row.output_width; ++position, to += row.output_step) {
    PairSums sums = StartOf(taps);
    const int32_t* pairs = taps.quads;
    int64_t x = position * window.stride_w - window.pad_left;
    for (int64_t j = 0; j < window.kernel_w; ++j, x += window.dilation_w) {
      for (int64_t i = 0; i < window.kernel_h; i += kPair, pairs += kChannels) {
        AddPairs(LoadPair(row, x, i), pairs, sums);
      }
    }
    StoreSums(sums, taps, steps, to);
  }
}

}  // namespace

void DepthwiseRowInPairs(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps) {
  const bool slides = row.window.stride_w == 1 && row.window.dilation_w == 1;
  if (slides && row.window.kernel_w == 3) return Slide<3>(row, taps, steps, std::make_integer_sequence<int, 3>());
  SumEach(row, taps, steps);
}

}  // namespace swizzle::cpu
HWY_POP_ATTRIBUTES
