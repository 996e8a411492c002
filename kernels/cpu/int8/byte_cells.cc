#include "kernels/cpu/int8/byte_cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>

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

#if HWY_TARGET == HWY_EMU128

int8_t WeightAt(int32_t quad, int i) { return static_cast<int8_t>(static_cast<uint32_t>(quad) >> (8 * i)); }

// sums = start + weights of quads times their four rows of bytes, at(i) being quad i. Products of a byte and a signed
// one fit 16 bits.
template <typename QuadAt>
void SumQuads(int32_t start, int64_t quads, const QuadAt& at, int32_t* HWY_RESTRICT sums) {
  std::fill_n(sums, kLanes, start);
  for (int64_t quad = 0; quad < quads; ++quad) {
    const RowQuad of = at(quad);
    for (int i = 0; i < 4; ++i) {
      const int16_t weight = WeightAt(of.weights, i);
      const uint8_t* const row = of.rows[i];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        sums[lane] += static_cast<int16_t>(weight * static_cast<int16_t>(row[lane]));
      }
    }
  }
}

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

// Nothing to gain here: rows stay as they are.
void Interleave(int64_t quads, const uint8_t* from, uint8_t* to) {
  if (from != to) std::memcpy(to, from, static_cast<size_t>(quads * 4 * kLanes));
}

template <typename QuadAt>
void SumBlocks(int32_t start, int64_t quads, const QuadAt& at, int32_t* sums) {
  const auto rows_at = [&](int64_t quad) {
    const BlockQuad of = at(quad);
    return RowQuad{of.weights, {of.rows, of.rows + kLanes, of.rows + 2 * kLanes, of.rows + 3 * kLanes}};
  };
  SumQuads(start, quads, rows_at, sums);
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

// vpmaddubsw adds two products of 16 bits and saturates: every second weight is zero, so that each comes alone.
HWY_INLINE void AddHalf(const HalfSums& x, int32_t quad, HalfSums& sums) {
  const __m256i ones = _mm256_set1_epi16(1), weights = _mm256_set1_epi32(quad);
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

// sums = start + weights of quads times their four rows of bytes, at(i) being quad i.
template <typename QuadAt>
HWY_INLINE void SumQuads(int32_t start, int64_t quads, const QuadAt& at, int32_t* sums) {
  for (int64_t half = 0; half < kLanes; half += kHalf) {
    HalfSums of = HalfStart(start);
    for (int64_t quad = 0; quad < quads; ++quad) {
      const RowQuad row = at(quad);
      AddHalf(InterleaveHalf(LoadHalf(row.rows[0] + half), LoadHalf(row.rows[1] + half), LoadHalf(row.rows[2] + half),
                             LoadHalf(row.rows[3] + half)),
              row.weights, of);
    }
    StoreHalf(of, sums + half);
  }
}

void StoreBytes(const int32_t* sums, float scale, int64_t row, const PanelBytes& panel, const OutputSteps& steps) {
  constexpr float kMost = 65536.0f;
  constexpr int64_t kFloats = 8;
  const uint8_t* const residual = panel.residual == nullptr ? nullptr : panel.residual + row * kLanes;
  const __m256 scales = _mm256_set1_ps(scale), residual_scale = _mm256_set1_ps(steps.residual_scale);
  const __m256 least = _mm256_set1_ps(-kMost), most = _mm256_set1_ps(kMost);
  const __m256i zero_point = _mm256_set1_epi32(steps.zero_point);
  const __m256i low = _mm256_set1_epi32(steps.low), high = _mm256_set1_epi32(steps.high);
  for (int64_t lane = 0; lane < kLanes; lane += kFloats) {
    const __m256 sum = _mm256_cvtepi32_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(sums + lane)));
    __m256 value;
    if (residual == nullptr) {
      value = _mm256_mul_ps(sum, scales);
    } else {
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(residual + lane));
      value = _mm256_fmadd_ps(sum, scales, _mm256_set1_ps(steps.residual_offset));
      value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), residual_scale, value);
    }
    const __m256i step = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(value, least), most));
    const __m256i held = _mm256_min_epi32(_mm256_max_epi32(_mm256_add_epi32(step, zero_point), low), high);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(held), _mm256_extracti128_si256(held, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(panel.bytes + row * kLanes + lane), _mm_packus_epi16(words, words));
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
HWY_INLINE void SumBlocks(int32_t start, int64_t quads, const QuadAt& at, int32_t* sums) {
  for (int64_t half = 0; half < 2; ++half) {
    HalfSums of = HalfStart(start);
    for (int64_t quad = 0; quad < quads; ++quad) {
      const BlockQuad block = at(quad);
      const uint8_t* const x = block.rows + 4 * half * kHalf;
      AddHalf({{LoadHalf(x), LoadHalf(x + kHalf), LoadHalf(x + 2 * kHalf), LoadHalf(x + 3 * kHalf)}}, block.weights,
              of);
    }
    StoreHalf(of, sums + half * kHalf);
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

void StoreReals(const int32_t* sums, float scale, int64_t row, const RealUnits& reals, const OutputSteps& steps) {
  for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
    if (reals.first[unit] == nullptr) continue;
    float* const to = reals.first[unit] + row * reals.stride[unit];
    for (int64_t lane = 0; lane < kPositionUnit; ++lane) {
      const float value = static_cast<float>(sums[unit * kPositionUnit + lane]) * scale;
      to[lane] = std::min(std::max(value, steps.real_low), steps.real_high);
    }
  }
}

void Store(const int32_t* sums, float scale, int64_t row, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.bytes != nullptr) return StoreBytes(sums, scale, row, panel, steps);
  StoreReals(sums, scale, row, *panel.reals, steps);
}

// Of one row of a strip.
template <typename Offset>
void SumRow(const QuadRows& rows, int32_t start, uint32_t quads, const int32_t* weights, const uint8_t* columns,
            const Offset* offset, int32_t* sums) {
  constexpr int64_t kUnit = sizeof(Offset) == sizeof(uint16_t) ? 8 : kLanes;
  const int32_t strip_rows = rows.shape.strip_rows;
  const auto row = [=](int64_t i) HWY_ATTR { return columns + static_cast<int64_t>(offset[i]) * kUnit; };
  if (rows.shape.blocks) {
    return SumBlocks(
        start, quads,
        [=](int64_t quad) HWY_ATTR {
          return BlockQuad{weights[quad * strip_rows], row(quad)};
        },
        sums);
  }
  const auto at = [=](int64_t quad) HWY_ATTR {
    const int64_t first = 4 * quad;
    return RowQuad{weights[quad * strip_rows], {row(first), row(first + 1), row(first + 2), row(first + 3)}};
  };
  SumQuads(start, quads, at, sums);
}

template <typename Offset>
void RunQuads(const QuadRows& rows, const Offset* offset, const PanelBytes& panel, const OutputSteps& steps) {
  const int32_t strip_rows = rows.shape.strip_rows;
  const int32_t* weight = rows.weights;
  size_t r = 0;
  for (const QuadGroup& group : rows.groups) {
    for (uint32_t strip = 0; strip < group.strips; ++strip) {
      for (int32_t in_strip = 0; in_strip < strip_rows; ++in_strip, ++r) {
        if (rows.rows[r] == QuadRows::kNoRow) continue;
        alignas(64) int32_t sums[kLanes];
        SumRow(rows, rows.start[r], group.quads, weight + in_strip, panel.columns, offset, sums);
        Store(sums, rows.scale[r], rows.rows[r], panel, steps);
      }
      weight += group.quads * strip_rows;
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
    alignas(64) int32_t sums[kLanes];
    SumBlocks(rows.start[row], rows.quads, at, sums);
    Store(sums, rows.scale[row], row, panel, steps);
  }
}

// Where a position of the first channel lies.
int64_t ByteOffset(const ByteSource& source, int64_t position) {
  if (!source.panels) return position;
  return position / kLanes * kLanes * source.channels + position % kLanes;
}

// Neighbouring lanes that read neighbouring bytes.
struct ByteRun {
  int64_t lane, length, offset;
};

// Of a tap; returns how many there are.
int PlanRuns(const ByteSource& source, const WindowLanes& lanes, int64_t tap, uint64_t read, ByteRun* runs) {
  int count = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    if ((read >> lane & 1) == 0) continue;
    const int64_t offset = ByteOffset(source, tap + lanes.offset[lane]);
    const bool follows = count > 0 && runs[count - 1].lane + runs[count - 1].length == lane &&
                         runs[count - 1].offset + runs[count - 1].length == offset;
    if (follows) {
      ++runs[count - 1].length;
    } else {
      runs[count++] = {lane, 1, offset};
    }
  }
  return count;
}

constexpr int kManyRuns = 12;  // more are copied byte by byte

struct ByteAt {
  int32_t lane, offset;
};

// Each byte of some runs by itself; returns how many there are.
int64_t SingleBytes(std::span<const ByteRun> runs, ByteAt* bytes) {
  int64_t count = 0;
  for (const ByteRun& run : runs) {
    for (int64_t b = 0; b < run.length; ++b) {
      bytes[count++] = {static_cast<int32_t>(run.lane + b), static_cast<int32_t>(run.offset + b - runs[0].offset)};
    }
  }
  return count;
}

void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns) {
  uint8_t* to = columns.to;
  for (int32_t i = 0; i < window.kernel_h; ++i) {
    for (int32_t j = 0; j < window.kernel_w; ++j) {
      const int64_t tap = lanes.base + i * window.dilation_h * source.width + j * window.dilation_w;
      ByteRun runs[kLanes];
      const int count = PlanRuns(source, lanes, tap, lanes.rows[i] & lanes.columns[j], runs);
      ByteAt at[kLanes];
      const int64_t bytes = SingleBytes(std::span(runs, count), at);
      const uint8_t* from = source.data + columns.first_channel * source.channel_stride;
      for (int64_t channel = 0; channel < columns.channels; ++channel, to += kLanes, from += source.channel_stride) {
        std::memset(to, columns.fill, kLanes);
        if (count > kManyRuns) {  // strided: single bytes
          for (int64_t b = 0; b < bytes; ++b) to[at[b].lane] = from[runs[0].offset + at[b].offset];
          continue;
        }
        for (int r = 0; r < count; ++r) std::memcpy(to + runs[r].lane, from + runs[r].offset, runs[r].length);
      }
    }
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
    alignas(64) int32_t sums[kLanes];
    SumQuads(taps.start[channel], taps.kernel_h * row_quads, at, sums);
    weight += taps.kernel_h * row_quads;
    Store(sums, taps.scale[channel], channel, panel, steps);
  }
}

void Products(const uint8_t* vectors, int64_t count, const int8_t* weights, int64_t cols, int32_t* sums) {
  for (int64_t i = 0; i < count; ++i) sums[i] = Product(vectors + i * cols, weights, cols);
}

}  // namespace

const ByteCells kByteCells = {.quads = Quads,
                              .blocks = Blocks,
                              .interleave = Interleave,
                              .gather = Gather,
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
