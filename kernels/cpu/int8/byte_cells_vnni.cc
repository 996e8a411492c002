// A quad is four loads, eight unpacks that bring four rows' bytes of a position together, and four vpdpbusd: about 7
// clocks of Zen 4, for 256 multiply-adds.
#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "hwy/base.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/int8/byte_cells.h"

// GCC 12 takes what its own intrinsics leave undefined for a mistake (GCC bug 105593).
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define SWIZZLE_INLINE inline __attribute__((always_inline))

HWY_PUSH_ATTRIBUTES("avx,avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")
namespace swizzle::cpu::vnni {
namespace {

constexpr int64_t kLanes = kMaxPanelWidth;

// Of 64 positions, as interleaving leaves them: lane 4 l + i of vector j is position 16 l + 4 j + i.
struct Sums {
  __m512i of[4];
};

SWIZZLE_INLINE __m512i Load(const uint8_t* from) { return _mm512_load_si512(from); }

// Four rows, interleaved byte by byte.
struct Interleaved {
  __m512i of[4];
};

SWIZZLE_INLINE Interleaved InterleaveRows(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i low_ab = _mm512_unpacklo_epi8(a, b), high_ab = _mm512_unpackhi_epi8(a, b);
  const __m512i low_cd = _mm512_unpacklo_epi8(c, d), high_cd = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(low_ab, low_cd), _mm512_unpackhi_epi16(low_ab, low_cd),
           _mm512_unpacklo_epi16(high_ab, high_cd), _mm512_unpackhi_epi16(high_ab, high_cd)}};
}

SWIZZLE_INLINE void AddProducts(const Interleaved& x, __m512i weights, Sums& sums) {
  sums.of[0] = _mm512_dpbusd_epi32(sums.of[0], x.of[0], weights);
  sums.of[1] = _mm512_dpbusd_epi32(sums.of[1], x.of[1], weights);
  sums.of[2] = _mm512_dpbusd_epi32(sums.of[2], x.of[2], weights);
  sums.of[3] = _mm512_dpbusd_epi32(sums.of[3], x.of[3], weights);
}

SWIZZLE_INLINE Sums StartFrom(int32_t start) {
  const __m512i all = _mm512_set1_epi32(start);
  return {{all, all, all, all}};
}

// OutputSteps in all lanes.
struct StepVectors {
  explicit SWIZZLE_INLINE StepVectors(const OutputSteps& steps)
      : zero_point(_mm512_set1_epi16(static_cast<int16_t>(steps.zero_point))),
        low(_mm512_set1_epi8(static_cast<char>(steps.low))),
        high(_mm512_set1_epi8(static_cast<char>(steps.high))),
        residual_scale(_mm512_set1_ps(steps.residual_scale)),
        residual_offset(_mm512_set1_ps(steps.residual_offset)) {}
  __m512i zero_point, low, high;
  __m512 residual_scale, residual_offset;
};

template <bool kResidual>
SWIZZLE_INLINE __m512i BytesOf(const Sums& sums, float row_scale, const uint8_t* residual, const StepVectors& steps) {
  const __m512 scale = _mm512_set1_ps(row_scale);
  __m512i step[4];
  if constexpr (kResidual) {
    const __m512i zero = _mm512_setzero_si512();
    const Interleaved r = InterleaveRows(Load(residual), zero, zero, zero);
    for (int j = 0; j < 4; ++j) {
      const __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.of[j]), scale, steps.residual_offset);
      step[j] = _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(r.of[j]), steps.residual_scale, value));
    }
  } else {
    for (int j = 0; j < 4; ++j) {
      step[j] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[j]), scale));
    }
  }
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(step[0], step[1]), steps.zero_point);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(step[2], step[3]), steps.zero_point);
  const __m512i bytes = _mm512_packus_epi16(first, second);
  return _mm512_min_epu8(_mm512_max_epu8(bytes, steps.low), steps.high);
}

SWIZZLE_INLINE void StoreReals(const Sums& sums, float row_scale, int64_t row, const RealUnits& reals,
                               const OutputSteps& steps) {
  const __m512 scale = _mm512_set1_ps(row_scale);
  const __m512 low = _mm512_set1_ps(steps.real_low), high = _mm512_set1_ps(steps.real_high);
  __m512 v[4];
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[j]), scale), low), high);
  }
  // Lane l of vector j, 128 bits, becomes lane j of unit l.
  const __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
  const __m512 c = _mm512_shuffle_f32x4(v[0], v[1], 0xee), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
  const __m512 units[4] = {_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd),
                           _mm512_shuffle_f32x4(c, d, 0x88), _mm512_shuffle_f32x4(c, d, 0xdd)};
  for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
    if (reals.first[unit] != nullptr) _mm512_storeu_ps(reals.first[unit] + row * reals.stride[unit], units[unit]);
  }
}

enum class Tail { kBytes, kResidual, kReals };

template <Tail kTail>
SWIZZLE_INLINE void StoreRow(const Sums& sums, float scale, int64_t row, const PanelBytes& panel,
                             const OutputSteps& steps, const StepVectors& vectors) {
  if constexpr (kTail == Tail::kReals) {
    StoreReals(sums, scale, row, *panel.reals, steps);
  } else {
    const uint8_t* const residual = kTail == Tail::kResidual ? panel.residual + row * kLanes : nullptr;
    const __m512i bytes = BytesOf<kTail == Tail::kResidual>(sums, scale, residual, vectors);
    _mm512_store_si512(panel.bytes + row * kLanes, bytes);
  }
}

// Offsets are in units of kUnit bytes.
template <Tail kTail, int kUnit, typename Offset>
void RunQuads(const QuadRows& rows, const Offset* offset, const PanelBytes& panel, const OutputSteps& steps) {
  const StepVectors vectors(steps);
  const uint8_t* const x = panel.columns;
  const int32_t* weight = rows.weights;
  size_t r = 0;
  for (const QuadGroup& group : rows.groups) {
    for (uint32_t left = group.rows; left != 0; --left, ++r) {
      Sums sums = StartFrom(rows.start[r]);
      for (uint32_t quad = group.quads; quad != 0; --quad, offset += 4) {
        const auto at = [&](int i) { return Load(x + static_cast<size_t>(offset[i]) * kUnit); };
        AddProducts(InterleaveRows(at(0), at(1), at(2), at(3)), _mm512_set1_epi32(*weight++), sums);
      }
      StoreRow<kTail>(sums, rows.scale[r], rows.rows[r], panel, steps, vectors);
    }
  }
}

template <Tail kTail>
void RunQuads(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (rows.far_columns != nullptr) return RunQuads<kTail, kLanes>(rows, rows.far_columns, panel, steps);
  RunQuads<kTail, 8>(rows, rows.near_offsets, panel, steps);
}

void Quads(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.bytes == nullptr) return RunQuads<Tail::kReals>(rows, panel, steps);
  if (panel.residual != nullptr) return RunQuads<Tail::kResidual>(rows, panel, steps);
  RunQuads<Tail::kBytes>(rows, panel, steps);
}

void Interleave(int64_t quads, const uint8_t* from, uint8_t* to) {
  for (int64_t quad = 0; quad < quads; ++quad, from += 4 * kLanes, to += 4 * kLanes) {
    const Interleaved x =
        InterleaveRows(Load(from), Load(from + kLanes), Load(from + 2 * kLanes), Load(from + 3 * kLanes));
    for (int j = 0; j < 4; ++j) _mm512_store_si512(to + j * kLanes, x.of[j]);
  }
}

template <Tail kTail>
void RunBlocks(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  constexpr int kRows = BlockRows::kRows;
  const StepVectors vectors(steps);
  const int32_t* weight = rows.weights;
  for (int64_t first = rows.first_row; first < rows.first_row + rows.rows; first += kRows) {
    Sums sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = StartFrom(rows.start[first + r]);
    const uint8_t* x = panel.columns;
    for (int64_t quad = 0; quad < rows.quads; ++quad, x += 4 * kLanes, weight += kRows) {
      const Interleaved of = {{Load(x), Load(x + kLanes), Load(x + 2 * kLanes), Load(x + 3 * kLanes)}};
      for (int r = 0; r < kRows; ++r) AddProducts(of, _mm512_set1_epi32(weight[r]), sums[r]);
    }
    for (int r = 0; r < kRows && first + r < rows.first_row + rows.rows; ++r) {
      StoreRow<kTail>(sums[r], rows.scale[first + r], first + r, panel, steps, vectors);
    }
  }
}

void Blocks(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.bytes == nullptr) return RunBlocks<Tail::kReals>(rows, panel, steps);
  if (panel.residual != nullptr) return RunBlocks<Tail::kResidual>(rows, panel, steps);
  RunBlocks<Tail::kBytes>(rows, panel, steps);
}

// What some lanes of a tap read: bytes of 128 neighbours, by index.
struct Piece {
  __m512i index;
  __mmask64 lanes;
  int64_t begin;                        // the first neighbour, in bytes of the first channel
  int64_t second;                       // the second 64 of them
  __mmask64 first_bytes, second_bytes;  // those that are inside the activation, of the last channel
};

// The pieces of one tap: each takes what lies within 128 bytes, so that most taps have one, or two where rows of the
// plane end.
struct TapPieces {
  int count = 0;
  Piece pieces[kMaxPanelWidth];
};

SWIZZLE_INLINE __mmask64 BytesFrom(int64_t begin, int64_t end) {
  if (begin >= end) return 0;
  return end - begin >= kLanes ? ~__mmask64{0} : (__mmask64{1} << (end - begin)) - 1;
}

// positions: what lanes read, where `read` has their bit.
void PlanTap(const ByteSource& source, const __m512i (&positions)[4], int64_t base, uint64_t read, TapPieces& tap) {
  tap.count = 0;
  alignas(64) int32_t offsets[kLanes];
  for (int q = 0; q < 4; ++q) _mm512_store_si512(offsets + 16 * q, positions[q]);
  while (read != 0) {
    Piece& piece = tap.pieces[tap.count++];
    int64_t begin = base + offsets[std::countr_zero(read)];
    if (source.panels) begin &= ~(kLanes - 1);
    const __m512i first = _mm512_set1_epi32(static_cast<int32_t>(begin - base));
    __m512i index = _mm512_setzero_si512();
    uint64_t lanes = 0;
    __m128i narrow[4];
    for (int q = 0; q < 4; ++q) {
      const __m512i from_begin = _mm512_sub_epi32(positions[q], first);
      const uint64_t near = _mm512_cmplt_epu32_mask(from_begin, _mm512_set1_epi32(2 * kLanes));
      lanes |= near << (16 * q);
      narrow[q] = _mm512_cvtepi32_epi8(from_begin);
    }
    index = _mm512_inserti32x4(_mm512_castsi128_si512(narrow[0]), narrow[1], 1);
    index = _mm512_inserti32x4(index, narrow[2], 2);
    piece.index = _mm512_inserti32x4(index, narrow[3], 3);
    piece.lanes = lanes & read;
    if (source.panels) {
      piece.begin = begin * source.channels;
      piece.second = piece.begin + kLanes * source.channels;
    } else {
      piece.begin = begin;
      piece.second = begin + kLanes;
    }
    const int64_t end = source.bytes - (source.channels - 1) * source.channel_stride;
    piece.first_bytes = BytesFrom(piece.begin, end);
    piece.second_bytes = BytesFrom(piece.second, end);
    read &= ~piece.lanes;
  }
}

SWIZZLE_INLINE __m512i ReadPiece(const Piece& piece, const uint8_t* from) {
  const __m512i first = _mm512_maskz_loadu_epi8(piece.first_bytes, from + piece.begin);
  const __m512i second = _mm512_maskz_loadu_epi8(piece.second_bytes, from + piece.second);
  return _mm512_permutex2var_epi8(first, piece.index, second);
}

// All channels of a tap.
void GatherTap(const ByteSource& source, const TapPieces& tap, const ByteColumns& columns, uint8_t* to) {
  const uint8_t* from = source.data + columns.first_channel * source.channel_stride;
  const __m512i fill = _mm512_set1_epi8(static_cast<char>(columns.fill));
  uint8_t* const end = to + columns.channels * kLanes;
  if (tap.count == 1) {
    const Piece piece = tap.pieces[0];
    for (; to != end; to += kLanes, from += source.channel_stride) {
      _mm512_store_si512(to, _mm512_mask_mov_epi8(fill, piece.lanes, ReadPiece(piece, from)));
    }
    return;
  }
  if (tap.count == 2) {
    const Piece a = tap.pieces[0], b = tap.pieces[1];
    for (; to != end; to += kLanes, from += source.channel_stride) {
      const __m512i bytes = _mm512_mask_mov_epi8(fill, a.lanes, ReadPiece(a, from));
      _mm512_store_si512(to, _mm512_mask_mov_epi8(bytes, b.lanes, ReadPiece(b, from)));
    }
    return;
  }
  for (; to != end; to += kLanes, from += source.channel_stride) {
    __m512i bytes = fill;
    for (int p = 0; p < tap.count; ++p) {
      bytes = _mm512_mask_mov_epi8(bytes, tap.pieces[p].lanes, ReadPiece(tap.pieces[p], from));
    }
    _mm512_store_si512(to, bytes);
  }
}

void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns) {
  TapPieces pieces;
  __m512i positions[4];
  for (int q = 0; q < 4; ++q) positions[q] = _mm512_loadu_si512(lanes.offset + 16 * q);
  uint8_t* to = columns.to;
  for (int32_t i = 0; i < window.kernel_h; ++i) {
    for (int32_t j = 0; j < window.kernel_w; ++j, to += columns.channels * kLanes) {
      const int64_t base = lanes.base + i * window.dilation_h * source.width + j * window.dilation_w;
      PlanTap(source, positions, base, lanes.rows[i] & lanes.columns[j], pieces);
      GatherTap(source, pieces, columns, to);
    }
  }
}

template <Tail kTail>
void RunDepthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps) {
  const StepVectors vectors(steps);
  const int64_t quads = CeilDiv(taps.taps, int64_t{4});
  const int64_t tap_bytes = taps.channels * kLanes;
  const int32_t* weight = taps.weights;
  for (int64_t channel = 0; channel < taps.channels; ++channel) {
    Sums sums = StartFrom(taps.start[channel]);
    const uint8_t* const rows = taps.columns + channel * kLanes;
    for (int64_t quad = 0; quad < quads; ++quad) {
      const auto row = [&](int64_t i) {  // the last tap again where there are no more: its weights are zero
        return Load(rows + std::min(4 * quad + i, taps.taps - 1) * tap_bytes);
      };
      AddProducts(InterleaveRows(row(0), row(1), row(2), row(3)), _mm512_set1_epi32(*weight++), sums);
    }
    StoreRow<kTail>(sums, taps.scale[channel], channel, panel, steps, vectors);
  }
}

void Depthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.residual != nullptr) return RunDepthwise<Tail::kResidual>(taps, panel, steps);
  RunDepthwise<Tail::kBytes>(taps, panel, steps);
}

template <int kCount>
SWIZZLE_INLINE void RunProducts(const uint8_t* vectors, const int8_t* weights, int64_t cols, int32_t* sums) {
  __m512i of[kCount];
  for (int i = 0; i < kCount; ++i) of[i] = _mm512_setzero_si512();
  for (int64_t c = 0; c < cols; c += kLanes) {
    const __mmask64 inside = BytesFrom(c, cols);
    const __m512i weight = _mm512_maskz_loadu_epi8(inside, weights + c);
    for (int i = 0; i < kCount; ++i) {
      of[i] = _mm512_dpbusd_epi32(of[i], _mm512_maskz_loadu_epi8(inside, vectors + i * cols + c), weight);
    }
  }
  for (int i = 0; i < kCount; ++i) sums[i] = _mm512_reduce_add_epi32(of[i]);
}

void Products(const uint8_t* vectors, int64_t count, const int8_t* weights, int64_t cols, int32_t* sums) {
  while (count >= 4) {
    RunProducts<4>(vectors, weights, cols, sums);
    vectors += 4 * cols, sums += 4, count -= 4;
  }
  for (; count > 0; --count, ++sums, vectors += cols) RunProducts<1>(vectors, weights, cols, sums);
}

}  // namespace

const ByteCells kByteCells = {.quads = Quads,
                              .blocks = Blocks,
                              .interleave = Interleave,
                              .gather = Gather,
                              .depthwise = Depthwise,
                              .products = Products,
                              .quantise = N_AVX3::QuantiseRun,
                              .dequantise = N_AVX3::DequantiseRun,
                              .add = N_AVX3::AddRun,
                              .largest = N_AVX3::LargestOfRows,
                              .sum = N_AVX3::SumRun};

}  // namespace swizzle::cpu::vnni
HWY_POP_ATTRIBUTES
