#include "kernels/cpu/int8/byte_cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/byte_cells.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// What is fastest is in byte_cells_vnni.cc. Here 256-bit vectors do what AVX2 can; elsewhere it is loops that the
// compiler makes vectors of.
HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = kMaxPanelWidth;

// Four rows of bytes and a signed byte for each, the first lowest.
struct RowQuad {
  int32_t weights;
  const uint8_t* rows[4];
};

// The same of rows that Interleave() left one after another.
struct BlockQuad {
  int32_t weights;
  const uint8_t* rows;
};

// What becomes of the sums of a row.
struct RowEnd {
  float scale;
  int64_t row;
  const PanelBytes& panel;
  const OutputSteps& steps;
};

// Units [first, first + count) of a row, whose sums they are.
void StoreReals(const int32_t* sums, int64_t first, int64_t count, float scale, int64_t row, const RealUnits& reals,
                const OutputSteps& steps) {
  for (int64_t unit = first; unit < first + count; ++unit, sums += kPositionUnit) {
    if (reals.first[unit] == nullptr) continue;
    float* const to = reals.first[unit] + row * reals.stride[unit];
    for (int64_t lane = 0; lane < kPositionUnit; ++lane) {
      const float value = static_cast<float>(sums[lane]) * scale;
      to[lane] = std::min(std::max(value, steps.real_low), steps.real_high);
    }
  }
}

#if HWY_TARGET == HWY_EMU128

int8_t WeightAt(int32_t quad, int i) { return static_cast<int8_t>(static_cast<uint32_t>(quad) >> (8 * i)); }

// Rounds to the nearest, ties to even: numbers up to 2^22 lose what is behind the point beside 1.5 * 2^23.
int32_t RoundedStep(float value) {
  constexpr float kShift = 12582912.0f;
  const float held = std::min(std::max(value, -65536.0f), 65536.0f);
  return static_cast<int32_t>((held + kShift) - kShift);
}

void StoreBytes(const int32_t* HWY_RESTRICT sums, float scale, int64_t row, const PanelBytes& panel,
                const OutputSteps& steps) {
  uint8_t* HWY_RESTRICT to = panel.bytes + row * kLanes;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    float value = static_cast<float>(sums[lane]) * scale;
    if (panel.residual != nullptr) {
      value = std::fma(static_cast<float>(sums[lane]), scale, steps.residual_offset);
      value = std::fma(static_cast<float>(panel.residual[row * kLanes + lane]), steps.residual_scale, value);
    }
    const int32_t step = RoundedStep(value) + steps.zero_point;
    to[lane] = static_cast<uint8_t>(std::min(std::max(step, steps.low), steps.high));
  }
}

// Stores start + weights of quads times their four rows of bytes, at(i) being quad i. Products of a byte and a signed
// one fit 16 bits.
template <bool kPairs, typename QuadAt>
void SumQuads(int32_t start, int64_t quads, const QuadAt& at, const RowEnd& end) {
  alignas(64) int32_t sums[kLanes];
  std::fill_n(sums, kLanes, start);
  for (int64_t quad = 0; quad < quads; ++quad) {
    const RowQuad of = at(quad);
    for (int i = 0; i < 4; ++i) {
      const int16_t weight = WeightAt(of.weights, i);  // NOLINT(bugprone-signed-char-misuse): it has a sign
      const uint8_t* const row = of.rows[i];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += static_cast<int16_t>(weight * static_cast<int16_t>(row[lane]));
      }
    }
  }
  if (end.panel.bytes != nullptr) return StoreBytes(sums, end.scale, end.row, end.panel, end.steps);
  StoreReals(sums, 0, RealUnits::kUnits, end.scale, end.row, *end.panel.reals, end.steps);
}

// Nothing to gain here: rows stay as they are.
void Interleave(int64_t quads, const uint8_t* from, uint8_t* to) {
  if (from != to) std::memcpy(to, from, static_cast<size_t>(quads * 4 * kLanes));
}

template <typename QuadAt>
void SumBlocks(int32_t start, int64_t quads, const QuadAt& at, const RowEnd& end) {
  const auto rows_at = [&](int64_t quad) {
    const BlockQuad of = at(quad);
    return RowQuad{of.weights, {of.rows, of.rows + kLanes, of.rows + 2 * kLanes, of.rows + 3 * kLanes}};
  };
  SumQuads<false>(start, quads, rows_at, end);
}

int32_t Product(const uint8_t* bytes, const int8_t* weights, int64_t cols) {
  int32_t sum = 0;
  for (int64_t c = 0; c < cols; ++c) sum += bytes[c] * weights[c];
  return sum;
}

#else

constexpr int64_t kHalf = kLanes / 2;

// Of 32 positions: lane 4 l + i of vector j is position 16 l + 4 j + i.
struct HalfSums {
  __m256i of[4];
};

HWY_INLINE HalfSums HalfStart(int32_t start) {
  const __m256i all = _mm256_set1_epi32(start);
  return {{all, all, all, all}};
}

HWY_INLINE __m256i LoadHalf(const uint8_t* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }

HWY_INLINE HalfSums InterleaveHalf(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i low_ab = _mm256_unpacklo_epi8(a, b), high_ab = _mm256_unpackhi_epi8(a, b);
  const __m256i low_cd = _mm256_unpacklo_epi8(c, d), high_cd = _mm256_unpackhi_epi8(c, d);
  return {{_mm256_unpacklo_epi16(low_ab, low_cd), _mm256_unpackhi_epi16(low_ab, low_cd),
           _mm256_unpacklo_epi16(high_ab, high_cd), _mm256_unpackhi_epi16(high_ab, high_cd)}};
}

// vpmaddubsw adds two products of 16 bits and saturates: of weights in pairs (quad_weight.h) it cannot. Of others it is
// given one of two, the other being zero.
template <bool kPairs>
HWY_INLINE void AddHalf(const HalfSums& x, int32_t quad, HalfSums& sums) {
  const __m256i ones = _mm256_set1_epi16(1), weights = _mm256_set1_epi32(quad);
  if constexpr (kPairs) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      sums.of[j] = _mm256_add_epi32(sums.of[j], _mm256_madd_epi16(_mm256_maddubs_epi16(x.of[j], weights), ones));
    }
    return;
  }
  const __m256i even = _mm256_and_si256(weights, _mm256_set1_epi16(0xff)), odd = _mm256_xor_si256(weights, even);
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    const __m256i first = _mm256_madd_epi16(_mm256_maddubs_epi16(x.of[j], even), ones);
    const __m256i second = _mm256_madd_epi16(_mm256_maddubs_epi16(x.of[j], odd), ones);
    sums.of[j] = _mm256_add_epi32(sums.of[j], _mm256_add_epi32(first, second));
  }
}

HWY_INLINE void StoreHalf(const HalfSums& sums, int32_t* to) {
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    _mm_store_si128(reinterpret_cast<__m128i*>(to + 4 * j), _mm256_castsi256_si128(sums.of[j]));
    _mm_store_si128(reinterpret_cast<__m128i*>(to + 16 + 4 * j), _mm256_extracti128_si256(sums.of[j], 1));
  }
}

// Bytes of 32 positions, in their order again. Steps fit 32 bits (byte_weight.h), and saturate from there on.
HWY_INLINE void StoreHalfBytes(const HalfSums& sums, float row_scale, const uint8_t* residual, const OutputSteps& steps,
                               uint8_t* to) {
  const __m256 scale = _mm256_set1_ps(row_scale);
  HalfSums step;
  if (residual == nullptr) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      step.of[j] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(sums.of[j]), scale));
    }
  } else {
    const __m256 residual_scale = _mm256_set1_ps(steps.residual_scale);
    const __m256 offset = _mm256_set1_ps(steps.residual_offset);
    const __m256i zero = _mm256_setzero_si256();
    const HalfSums r = InterleaveHalf(LoadHalf(residual), zero, zero, zero);
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const __m256 value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums.of[j]), scale, offset);
      step.of[j] = _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(r.of[j]), residual_scale, value));
    }
  }
  const __m256i zero_point = _mm256_set1_epi16(static_cast<int16_t>(steps.zero_point));
  const __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(step.of[0], step.of[1]), zero_point);
  const __m256i second = _mm256_adds_epi16(_mm256_packs_epi32(step.of[2], step.of[3]), zero_point);
  const __m256i low = _mm256_set1_epi8(static_cast<char>(steps.low));
  const __m256i high = _mm256_set1_epi8(static_cast<char>(steps.high));
  const __m256i bytes = _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(first, second), low), high);
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), bytes);
}

HWY_INLINE void StoreHalfOf(const HalfSums& sums, int64_t half, const RowEnd& end) {
  const int64_t at = end.row * kLanes + half;
  if (end.panel.bytes != nullptr) {
    const uint8_t* const residual = end.panel.residual == nullptr ? nullptr : end.panel.residual + at;
    return StoreHalfBytes(sums, end.scale, residual, end.steps, end.panel.bytes + at);
  }
  alignas(32) int32_t stored[kHalf];
  StoreHalf(sums, stored);
  StoreReals(stored, half / kPositionUnit, kHalf / kPositionUnit, end.scale, end.row, *end.panel.reals, end.steps);
}

// Stores start + weights of quads times their four rows of bytes, at(i) being quad i.
template <bool kPairs, typename QuadAt>
HWY_INLINE void SumQuads(int32_t start, int64_t quads, const QuadAt& at, const RowEnd& end) {
  for (int64_t half = 0; half < end.panel.positions; half += kHalf) {
    HalfSums of = HalfStart(start);
    for (int64_t quad = 0; quad < quads; ++quad) {
      const RowQuad row = at(quad);
      AddHalf<kPairs>(InterleaveHalf(LoadHalf(row.rows[0] + half), LoadHalf(row.rows[1] + half),
                                     LoadHalf(row.rows[2] + half), LoadHalf(row.rows[3] + half)),
                      row.weights, of);
    }
    StoreHalfOf(of, half, end);
  }
}

void Interleave(int64_t quads, const uint8_t* from, uint8_t* to) {
  for (int64_t quad = 0; quad < quads; ++quad, from += 4 * kLanes, to += 4 * kLanes) {
    HalfSums of[2];
    for (int half = 0; half < 2; ++half) {
      const uint8_t* const at = from + half * kHalf;
      of[half] =
          InterleaveHalf(LoadHalf(at), LoadHalf(at + kLanes), LoadHalf(at + 2 * kLanes), LoadHalf(at + 3 * kLanes));
    }
    for (int half = 0; half < 2; ++half) {
      for (int j = 0; j < 4; ++j) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(to + (4 * half + j) * kHalf), of[half].of[j]);
      }
    }
  }
}

template <typename QuadAt>
HWY_INLINE void SumBlocks(int32_t start, int64_t quads, const QuadAt& at, const RowEnd& end) {
  for (int64_t half = 0; half * kHalf < end.panel.positions; ++half) {
    HalfSums of = HalfStart(start);
    for (int64_t quad = 0; quad < quads; ++quad) {
      const BlockQuad block = at(quad);
      const uint8_t* const x = block.rows + 4 * half * kHalf;
      AddHalf<false>({{LoadHalf(x), LoadHalf(x + kHalf), LoadHalf(x + 2 * kHalf), LoadHalf(x + 3 * kHalf)}},
                     block.weights, of);
    }
    StoreHalfOf(of, half * kHalf, end);
  }
}

int32_t Product(const uint8_t* bytes, const int8_t* weights, int64_t cols) {
  __m256i sums = _mm256_setzero_si256();
  int64_t c = 0;
  for (; c + 16 <= cols; c += 16) {
    const __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + c)));
    const __m256i w = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + c)));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x, w));
  }
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
  int32_t sum = std::accumulate(lanes, lanes + 8, 0);
  for (; c < cols; ++c) sum += bytes[c] * weights[c];
  return sum;
}

#endif

// A strip, as far as its rows have it in common.
template <typename Offset>
struct Strip {
  const QuadShape& shape;
  uint32_t quads;
  const Offset* offset;
};

// Of one row of a strip.
template <typename Offset>
void SumRow(const Strip<Offset>& strip, int32_t start, const int32_t* weights, const RowEnd& end) {
  constexpr int64_t kUnit = sizeof(Offset) == sizeof(uint16_t) ? 8 : kLanes;
  const int32_t strip_rows = strip.shape.strip_rows;
  const auto row = [&](int64_t i)
                       HWY_ATTR { return end.panel.columns + static_cast<int64_t>(strip.offset[i]) * kUnit; };
  if (strip.shape.blocks) {
    const auto at = [&](int64_t quad) HWY_ATTR { return BlockQuad{weights[quad * strip_rows], row(quad)}; };
    return SumBlocks(start, strip.quads, at, end);
  }
  const auto at = [&](int64_t quad) HWY_ATTR {
    const int64_t first = 4 * quad;
    return RowQuad{weights[quad * strip_rows], {row(first), row(first + 1), row(first + 2), row(first + 3)}};
  };
  if (strip.shape.pairs) return SumQuads<true>(start, strip.quads, at, end);
  SumQuads<false>(start, strip.quads, at, end);
}

template <typename Offset>
void RunQuads(const QuadRows& rows, const Offset* offset, const PanelBytes& panel, const OutputSteps& steps) {
  const int32_t strip_rows = rows.shape.strip_rows;
  const int32_t* weight = rows.weights;
  size_t r = 0;
  for (const QuadGroup& group : rows.groups) {
    for (uint32_t i = 0; i < group.strips; ++i) {
      const Strip<Offset> strip = {rows.shape, group.quads, offset};
      for (int32_t in_strip = 0; in_strip < strip_rows; ++in_strip, ++r) {
        if (rows.rows[r] == QuadRows::kNoRow) continue;
        SumRow(strip, rows.start[r], weight + in_strip, {rows.scale[r], rows.rows[r], panel, steps});
      }
      weight += size_t{group.quads} * strip_rows;
      offset += group.quads * (rows.shape.blocks ? 1 : 4);
    }
  }
}

void Quads(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (rows.far_columns != nullptr) return RunQuads(rows, rows.far_columns, panel, steps);
  RunQuads(rows, rows.near_offsets, panel, steps);
}

void Blocks(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  for (int64_t r = 0; r < rows.rows; ++r) {
    const int64_t row = rows.first_row + r;
    const int32_t* const weights =
        rows.weights + r / BlockRows::kRows * rows.quads * BlockRows::kRows + r % BlockRows::kRows;
    const auto at = [&](int64_t quad) HWY_ATTR {
      return BlockQuad{weights[quad * BlockRows::kRows], panel.columns + 4 * quad * kLanes};
    };
    SumBlocks(rows.start[row], rows.quads, at, {rows.scale[row], row, panel, steps});
  }
}

void Depthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps) {
  const int64_t row_quads = CeilDiv(taps.kernel_w, int64_t{4});
  const int32_t* weight = taps.weights;
  for (int64_t channel = 0; channel < taps.channels; ++channel) {
    const auto at = [&](int64_t quad) HWY_ATTR {
      const int64_t first = quad / row_quads * taps.kernel_w;
      const auto row = [&](int64_t i) {  // the last tap again where there are no more: its weights are zero
        const int64_t tap = first + std::min(quad % row_quads * 4 + i, taps.kernel_w - 1);
        return taps.columns + (tap * taps.channels + channel) * kLanes;
      };
      return RowQuad{weight[quad], {row(0), row(1), row(2), row(3)}};
    };
    SumQuads<false>(taps.start[channel], taps.kernel_h * row_quads, at, {taps.scale[channel], channel, panel, steps});
    weight += taps.kernel_h * row_quads;
  }
}

void Products(const uint8_t* vectors, int64_t count, const int8_t* weights, int64_t rows, int64_t cols, int32_t* sums) {
  for (int64_t row = 0; row < rows; ++row, weights += cols) {
    for (int64_t i = 0; i < count; ++i) sums[i * rows + row] = Product(vectors + i * cols, weights, cols);
  }
}

}  // namespace

const ByteCells kByteCells = {.quads = Quads,
                              .blocks = Blocks,
                              .interleave = Interleave,
                              .gather = GatherWindow,
                              .depthwise = Depthwise,
                              .direct_depthwise = nullptr,
                              .products = Products,
                              .quantise = QuantiseRun,
                              .dequantise = DequantiseRun,
                              .add = AddRun,
                              .largest = LargestOfRows,
                              .sum = SumRun};

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
