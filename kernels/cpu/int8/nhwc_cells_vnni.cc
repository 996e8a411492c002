// A column of a window is up to four rows' bytes, brought together for 64 channels by eight unpacks. Where windows are
// next to each other, the next one reads all columns but one again: each column is added to all windows that it is in.
#include <algorithm>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/nhwc_cells.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu {
namespace {

using vnni::BytesFrom;
using vnni::Interleaved;
using vnni::StepVectors;
using vnni::Sums;

constexpr int kQuad = 4;
constexpr int64_t kVector = 64;

// What all positions of a row have in common.
struct RowVectors {
  SWIZZLE_INLINE RowVectors(const NhwcRow& row, const OutputSteps& output)
      : steps(output), inside(BytesFrom(0, row.channels)) {}
  // All channels, or those that there are.
  template <bool kWhole>
  SWIZZLE_INLINE __m512i Load(const uint8_t* from) const {
    if constexpr (kWhole) return _mm512_loadu_si512(from);
    return _mm512_maskz_loadu_epi8(inside, from);
  }
  template <bool kWhole>
  SWIZZLE_INLINE void Store(uint8_t* to, __m512i bytes) const {
    if constexpr (kWhole) {
      _mm512_storeu_si512(to, bytes);
    } else {
      _mm512_mask_storeu_epi8(to, inside, bytes);
    }
  }

  const StepVectors steps;
  const __mmask64 inside;
};

// Up to four rows of a column, from row `first` of the window on.
template <bool kWhole>
SWIZZLE_INLINE Interleaved LoadColumn(const NhwcRow& row, const RowVectors& vectors, int64_t x, int64_t first) {
  const bool is_inside = x >= 0 && x < row.width;
  __m512i of[kQuad];
  HWY_UNROLL(4)
  for (int i = 0; i < kQuad; ++i) {
    const int64_t tap = first + i;
    if (tap >= row.window.kernel_h) {
      of[i] = _mm512_setzero_si512();
    } else {
      of[i] = vectors.Load<kWhole>(is_inside ? row.rows[tap] + x * row.steps[tap] : row.outside);
    }
  }
  return vnni::InterleaveRows(of[0], of[1], of[2], of[3]);
}

SWIZZLE_INLINE void AddQuads(const Interleaved& x, const int32_t* quads, Sums& sums) {
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j)
    sums.of[j] = _mm512_dpbusd_epi32(sums.of[j], x.of[j], _mm512_load_si512(quads + int64_t{16} * j));
}

SWIZZLE_INLINE Sums StartOf(const NhwcTaps& taps) {
  return {{_mm512_load_si512(taps.start), _mm512_load_si512(taps.start + 16), _mm512_load_si512(taps.start + 32),
           _mm512_load_si512(taps.start + 48)}};
}

SWIZZLE_INLINE __m512 RealsOf(const Sums& sums, const NhwcTaps& taps, int j) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[j]), _mm512_load_ps(taps.scale + int64_t{16} * j));
}

// Where sums of one position after the other go: as bytes to the row of outputs,
struct BytesOut {
  explicit BytesOut(const NhwcRow& row) : to(row.output), step(row.output_step) {}

  template <bool kWhole>
  SWIZZLE_INLINE void Put(const Sums& sums, const NhwcTaps& taps, const RowVectors& vectors) {
    __m512i steps[4];
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) steps[j] = _mm512_cvtps_epi32(RealsOf(sums, taps, j));
    vectors.Store<kWhole>(to, vnni::PackSteps(steps, vectors.steps));
    to += step;
  }

  uint8_t* to;
  int64_t step;
};

// or as real numbers, of all channels in the order of the sums.
struct RealsOut {
  template <bool kWhole>
  SWIZZLE_INLINE void Put(const Sums& sums, const NhwcTaps& taps, const RowVectors&) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) _mm512_storeu_ps(to + int64_t{16} * j, RealsOf(sums, taps, j));
    to += kNhwcChannels;
  }

  float* to;
};

// Windows next to each other, of kColumns columns and kRows rows. Sums of kColumns windows are under way: of the one
// that begins at column c those of index c % kColumns.
template <bool kWhole, int kColumns, int kRows, typename Out>
class Slide {
 public:
  SWIZZLE_INLINE Slide(const NhwcRow& row, const NhwcTaps& taps, const RowVectors& vectors, Out out)
      : row_(row), taps_(taps), vectors_(vectors), out_(out), x_(-row.window.pad_left) {
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) from_[i] = row.rows[i] + x_ * row.steps[i];
    HWY_UNROLL(8)
    for (int i = 0; i < kColumns; ++i) sums_[i] = StartOf(taps);
  }
  void Run() {
    const int64_t end = row_.output_width + kColumns - 1;
    int64_t column = 0;
    for (; column + kColumns <= end; column += kColumns) Step(column, std::make_integer_sequence<int, kColumns>());
    Rest(column, end, std::make_integer_sequence<int, kColumns>());
  }

 private:
  static constexpr int kRowQuads = (kRows + kQuad - 1) / kQuad;

  template <int... kPhases>
  SWIZZLE_INLINE void Step(int64_t column, std::integer_sequence<int, kPhases...>) {
    (Add<kPhases>(column + kPhases), ...);
  }
  template <int... kPhases>
  SWIZZLE_INLINE void Rest(int64_t column, int64_t end, std::integer_sequence<int, kPhases...>) {
    ((column + kPhases < end ? Add<kPhases>(column + kPhases) : void()), ...);
  }
  template <int kPhase>
  SWIZZLE_INLINE void Add(int64_t column) {
    constexpr int kEnds = (kPhase + 1) % kColumns;
    const bool is_inside = x_ >= 0 && x_ < row_.width;
    HWY_UNROLL(2)
    for (int quad = 0; quad < kRowQuads; ++quad) {
      __m512i of[kQuad];
      HWY_UNROLL(4)
      for (int i = 0; i < kQuad; ++i) {
        const int tap = quad * kQuad + i;
        of[i] = _mm512_setzero_si512();
        if (tap < kRows) of[i] = vectors_.template Load<kWhole>(is_inside ? from_[tap] : row_.outside);
      }
      const Interleaved x = vnni::InterleaveRows(of[0], of[1], of[2], of[3]);
      HWY_UNROLL(8)
      for (int i = 0; i < kColumns; ++i) {
        AddQuads(x, taps_.quads + (i * kRowQuads + quad) * kNhwcChannels, sums_[(kPhase + kColumns - i) % kColumns]);
      }
    }
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) from_[i] += row_.steps[i];
    ++x_;
    if (column >= kColumns - 1) out_.template Put<kWhole>(sums_[kEnds], taps_, vectors_);
    sums_[kEnds] = StartOf(taps_);
  }

  const NhwcRow& row_;
  const NhwcTaps& taps_;
  const RowVectors& vectors_;
  Out out_;
  int64_t x_;
  const uint8_t* from_[kRows];
  Sums sums_[kColumns];
};

// 32 channels of two neighbouring positions, which lie one behind the other.
constexpr int64_t kPairedChannels = kNhwcChannels / 2;

SWIZZLE_INLINE Interleaved LoadPairs(const NhwcRow& row, int64_t x) {
  const bool is_first = x >= 0 && x < row.width, is_second = x + 1 >= 0 && x + 1 < row.width;
  __m512i of[kQuad];
  HWY_UNROLL(4)
  for (int i = 0; i < kQuad; ++i) {
    of[i] = _mm512_setzero_si512();
    if (i >= 3) continue;
    const uint8_t* const at = row.rows[i] + x * row.steps[i];
    if (is_first && is_second) {
      of[i] = _mm512_loadu_si512(at);
    } else {
      const auto* const first = reinterpret_cast<const __m256i*>(is_first ? at : row.outside);
      const auto* const second = reinterpret_cast<const __m256i*>(is_second ? at + row.steps[i] : row.outside);
      of[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(first)), _mm256_loadu_si256(second), 1);
    }
  }
  return vnni::InterleaveRows(of[0], of[1], of[2], of[3]);
}

// 3x3 windows next to each other, two at a time; the taps stand twice. The last column of two windows is the first of
// the next two.
void SlidePairs(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps) {
  const RowVectors whole(row, steps);
  int64_t x = -row.window.pad_left;
  BytesOut out(row);
  out.step = kVector;
  Interleaved first = LoadPairs(row, x);
  for (int64_t position = 0; position < row.output_width; position += 2, x += 2) {
    Sums sums = StartOf(taps);
    AddQuads(first, taps.quads, sums);
    AddQuads(LoadPairs(row, x + 1), taps.quads + kNhwcChannels, sums);
    first = LoadPairs(row, x + 2);
    AddQuads(first, taps.quads + 2 * kNhwcChannels, sums);
    if (position + 1 < row.output_width) {
      out.Put<true>(sums, taps, whole);
    } else {
      out.Put<false>(sums, taps, whole);
    }
  }
}

template <bool kWhole, typename Out>
void SumEach(const NhwcRow& row, const NhwcTaps& taps, const RowVectors& vectors, Out out) {
  const Window& window = row.window;
  for (int64_t position = 0; position < row.output_width; ++position) {
    Sums sums = StartOf(taps);
    const int32_t* quads = taps.quads;
    int64_t x = position * window.stride_w - window.pad_left;
    for (int64_t j = 0; j < window.kernel_w; ++j, x += window.dilation_w) {
      for (int64_t i = 0; i < window.kernel_h; i += kQuad, quads += kNhwcChannels) {
        AddQuads(LoadColumn<kWhole>(row, vectors, x, i), quads, sums);
      }
    }
    out.template Put<kWhole>(sums, taps, vectors);
  }
}

template <bool kWhole, typename Out>
void RunDepthwise(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps, Out out) {
  const RowVectors vectors(row, steps);
  const Window& window = row.window;
  const bool slides = window.stride_w == 1 && window.dilation_w == 1;
  if (slides && window.kernel_w == 3 && window.kernel_h == 3)
    return Slide<kWhole, 3, 3, Out>(row, taps, vectors, out).Run();
  if (slides && window.kernel_w == 5 && window.kernel_h == 5)
    return Slide<kWhole, 5, 5, Out>(row, taps, vectors, out).Run();
  SumEach<kWhole>(row, taps, vectors, out);
}

template <bool kWhole>
void RunLargest(const NhwcRow& row, const OutputSteps& steps) {
  const RowVectors vectors(row, steps);
  const Window& window = row.window;
  uint8_t* to = row.output;
  for (int64_t position = 0; position < row.output_width; ++position, to += row.output_step) {
    __m512i largest = vectors.steps.low;
    int64_t x = position * window.stride_w - window.pad_left;
    for (int64_t j = 0; j < window.kernel_w; ++j, x += window.dilation_w) {
      if (x < 0 || x >= row.width) continue;
      for (int64_t i = 0; i < window.kernel_h; ++i) {
        largest = _mm512_max_epu8(largest, vectors.Load<kWhole>(row.rows[i] + x * row.steps[i]));
      }
    }
    vectors.Store<kWhole>(to, _mm512_min_epu8(largest, vectors.steps.high));
  }
}

}  // namespace

void DepthwiseRow(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps) {
  if (row.channels == kNhwcChannels) return RunDepthwise<true>(row, taps, steps, BytesOut(row));
  const Window& window = row.window;
  const bool slides = window.stride_w == 1 && window.dilation_w == 1 && window.kernel_w == 3 && window.kernel_h == 3;
  if (slides && row.channels == kPairedChannels && row.output_step == kPairedChannels) {
    return SlidePairs(row, taps, steps);
  }
  RunDepthwise<false>(row, taps, steps, BytesOut(row));
}

void DepthwiseRealsRow(const NhwcRow& row, const NhwcTaps& taps, float* reals) {
  if (row.channels == kNhwcChannels) return RunDepthwise<true>(row, taps, {}, RealsOut{reals});
  RunDepthwise<false>(row, taps, {}, RealsOut{reals});
}

// The quotient by a reciprocal, with the remainder's added, is the rounded one but for a last place now and then. What
// is far beyond a byte, or no number, is held to words, which the conversion takes.
void RoundRow(const float* reals, const NhwcRow& row, const Quantised& to_be, const OutputSteps& steps) {
  const RowVectors vectors(row, steps);
  const __m512 scale = _mm512_set1_ps(to_be.scale), reciprocal = _mm512_set1_ps(1.0f / to_be.scale);
  const __m512 least = _mm512_set1_ps(-32768.0f), most = _mm512_set1_ps(32767.0f);
  uint8_t* to = row.output;
  for (int64_t position = 0; position < row.output_width; ++position, reals += kNhwcChannels, to += row.output_step) {
    __m512i step[4];
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const __m512 value = _mm512_loadu_ps(reals + int64_t{16} * j), near = _mm512_mul_ps(value, reciprocal);
      const __m512 steps_of = _mm512_fmadd_ps(_mm512_fnmadd_ps(near, scale, value), reciprocal, near);
      step[j] = _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(steps_of, least), most));
    }
    vectors.Store<false>(to, vnni::PackSteps(step, vectors.steps));
  }
}

void LargestRow(const NhwcRow& row, const OutputSteps& steps) {
  if (row.channels == kNhwcChannels) return RunLargest<true>(row, steps);
  RunLargest<false>(row, steps);
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI
