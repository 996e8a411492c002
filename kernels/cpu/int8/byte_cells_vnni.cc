// A quad is four loads, eight unpacks that bring four rows' bytes of a position together, and four vpdpbusd: about 7
// clocks of Zen 4, for 256 multiply-adds. Rows that share columns, in strips, share loads and unpacks; blocks need
// none.
#include <type_traits>

#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu::vnni {
namespace {

// The four rows of a quad, byte by byte; of a block they lie so. Offsets are in units of kUnit bytes.
template <typename Panel, bool kBlocks, int kUnit, typename Offset>
SWIZZLE_INLINE typename Panel::Sums LoadQuad(const uint8_t* columns, const Offset* offset) {
  if constexpr (kBlocks) {
    return Panel::LoadBlock(columns + static_cast<size_t>(*offset) * kUnit);
  } else {
    const auto at = [&](int i) { return Panel::Load(columns + static_cast<size_t>(offset[i]) * kUnit); };
    return Panel::Interleave(at(0), at(1), at(2), at(3));
  }
}

// Where the next strip of a slice begins.
template <typename Offset>
struct StripPlace {
  bool begins, ends;  // the first part, the last
  const Offset* offset;
  const int32_t *weight, *start;
  const float* scale;
  const uint32_t* row;
};

// Strips of `quads` quads each, side by side: the sums of one alone would wait for each other.
template <typename Panel, Tail kTail, int kRows, int kStrips, bool kBlocks, int kUnit, typename Offset>
SWIZZLE_INLINE void RunSideBySide(uint32_t quads, const PanelBytes& panel, const OutputSteps& steps,
                                  const StepVectors& vectors, StripPlace<Offset>& place) {
  constexpr int kOffsets = kBlocks ? 1 : 4, kAll = kStrips * kRows;
  const size_t offsets_each = size_t{quads} * kOffsets, weights_each = size_t{quads} * kRows;
  typename Panel::Sums sums[kAll];
  HWY_UNROLL(4)
  for (int r = 0; r < kAll; ++r) sums[r] = Panel::StartFrom(place.start[r]);
  place.start += kAll;
  if (kRows == 1 && !place.begins) {
    HWY_UNROLL(4)
    for (int r = 0; r < kAll; ++r) sums[r] = Panel::LoadSums(panel.sums + place.row[r] * kLanes);
  }
  const Offset* offset = place.offset;
  const int32_t* weight = place.weight;
  for (uint32_t quad = quads; quad != 0; --quad, offset += kOffsets, weight += kRows) {
    HWY_UNROLL(4)
    for (int s = 0; s < kStrips; ++s) {
      const typename Panel::Sums x = LoadQuad<Panel, kBlocks, kUnit>(panel.columns, offset + s * offsets_each);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) Panel::AddProducts(x, weight[s * weights_each + r], sums[s * kRows + r]);
    }
  }
  place.offset += kStrips * offsets_each;
  place.weight += kStrips * weights_each;
  HWY_UNROLL(4)
  for (int r = 0; r < kAll; ++r, ++place.scale, ++place.row) {
    if (kRows > 1 && *place.row == QuadRows::kNoRow) continue;
    if (kRows == 1 && !place.ends) {
      Panel::StoreSums(sums[r], panel.sums + *place.row * kLanes);
      continue;
    }
    StoreRow<kTail>(Panel::Whole(sums[r]), *place.scale, *place.row, panel, steps, vectors);
  }
}

template <typename Panel, Tail kTail, int kRows, bool kBlocks, int kUnit, typename Offset>
void RunQuads(const QuadRows& rows, const Offset* offset, const PanelBytes& panel, const OutputSteps& steps) {
  constexpr int kTogether = kRows == 1 ? (std::is_same_v<Panel, FewPositions> ? 4 : 2) : 1;
  const StepVectors vectors(steps);
  StripPlace<Offset> place = {rows.begins, rows.ends, offset, rows.weights, rows.start, rows.scale, rows.rows};
  for (const QuadGroup& group : rows.groups) {
    uint32_t left = group.strips;
    if constexpr (kTogether > 1) {
      for (; left >= kTogether; left -= kTogether) {
        RunSideBySide<Panel, kTail, kRows, kTogether, kBlocks, kUnit>(group.quads, panel, steps, vectors, place);
      }
    }
    for (; left != 0; --left) {
      RunSideBySide<Panel, kTail, kRows, 1, kBlocks, kUnit>(group.quads, panel, steps, vectors, place);
    }
  }
}

template <typename Panel, Tail kTail, int kRows>
void RunStrips(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  const uint16_t* const near = rows.near_offsets;
  const uint32_t* const far = rows.far_columns;
  if (rows.shape.blocks) {
    if (far != nullptr) return RunQuads<Panel, kTail, kRows, true, kLanes>(rows, far, panel, steps);
    return RunQuads<Panel, kTail, kRows, true, 8>(rows, near, panel, steps);
  }
  if (far != nullptr) return RunQuads<Panel, kTail, kRows, false, kLanes>(rows, far, panel, steps);
  RunQuads<Panel, kTail, kRows, false, 8>(rows, near, panel, steps);
}

template <typename Panel, Tail kTail>
void RunShape(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (rows.shape.strip_rows == 1) return RunStrips<Panel, kTail, 1>(rows, panel, steps);
  if (rows.shape.strip_rows == 2) return RunStrips<Panel, kTail, 2>(rows, panel, steps);
  RunStrips<Panel, kTail, 4>(rows, panel, steps);
}

template <typename Panel>
void QuadsOf(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.bytes == nullptr) return RunShape<Panel, Tail::kReals>(rows, panel, steps);
  if (panel.residual != nullptr) return RunShape<Panel, Tail::kResidual>(rows, panel, steps);
  RunShape<Panel, Tail::kBytes>(rows, panel, steps);
}

void Quads(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.positions <= FewPositions::kMost) return QuadsOf<FewPositions>(rows, panel, steps);
  if (panel.positions <= kLanes / 2) return QuadsOf<HalfPanel>(rows, panel, steps);
  QuadsOf<WholePanel>(rows, panel, steps);
}

void Interleave(int64_t quads, const uint8_t* from, uint8_t* to) {
  for (int64_t quad = 0; quad < quads; ++quad, from += 4 * kLanes, to += 4 * kLanes) {
    const Interleaved x =
        InterleaveRows(Load(from), Load(from + kLanes), Load(from + 2 * kLanes), Load(from + 3 * kLanes));
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) _mm512_store_si512(to + j * kLanes, x.of[j]);
  }
}

template <typename Panel, Tail kTail>
void RunBlocks(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  constexpr int kRows = BlockRows::kRows;
  const StepVectors vectors(steps);
  const int32_t* weight = rows.weights;
  const int64_t end = rows.first_row + rows.rows;
  for (int64_t first = rows.first_row; first < end; first += kRows) {
    typename Panel::Sums sums[kRows];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) sums[r] = Panel::StartFrom(rows.start[first + r]);
    uint32_t x = 0;
    for (int64_t quad = 0; quad < rows.quads; ++quad, ++x, weight += kRows) {
      const typename Panel::Sums of = LoadQuad<Panel, true, 4 * kLanes>(panel.columns, &x);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) Panel::AddProducts(of, weight[r], sums[r]);
    }
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= end) break;
      StoreRow<kTail>(Panel::Whole(sums[r]), rows.scale[first + r], first + r, panel, steps, vectors);
    }
  }
}

template <typename Panel>
void BlocksOf(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.bytes == nullptr) return RunBlocks<Panel, Tail::kReals>(rows, panel, steps);
  if (panel.residual != nullptr) return RunBlocks<Panel, Tail::kResidual>(rows, panel, steps);
  RunBlocks<Panel, Tail::kBytes>(rows, panel, steps);
}

void Blocks(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.positions <= FewPositions::kMost) return BlocksOf<FewPositions>(rows, panel, steps);
  if (panel.positions <= kLanes / 2) return BlocksOf<HalfPanel>(rows, panel, steps);
  BlocksOf<WholePanel>(rows, panel, steps);
}

// In each 128 bits: sums of two lanes of a and of b, in turn.
SWIZZLE_INLINE __m512i AddPairs(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

// The sum of all lanes of each.
SWIZZLE_INLINE __m128i SumsOfFour(const __m512i (&of)[4]) {
  const __m512i ab = AddPairs(of[0], of[1]), cd = AddPairs(of[2], of[3]);
  const __m512i lanes = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
  const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

// Four rows of weights, which share what is read of the vectors. Large weights come from beyond the second cache: what
// is kAhead bytes ahead is asked for into it.
template <int kCount>
SWIZZLE_INLINE void AddFourRows(__mmask64 inside, const uint8_t* vectors, const int8_t* weights, int64_t cols,
                                __m512i (&sums)[kCount][4]) {
  constexpr int64_t kAhead = int64_t{16} << 10;
  __m512i weight[4];
  HWY_UNROLL(4)
  for (int r = 0; r < 4; ++r) {
    _mm_prefetch(reinterpret_cast<const char*>(weights + r * cols + kAhead), _MM_HINT_T1);
    weight[r] = _mm512_maskz_loadu_epi8(inside, weights + r * cols);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kCount; ++i) {
    const __m512i vector = _mm512_maskz_loadu_epi8(inside, vectors + i * cols);
    HWY_UNROLL(4)
    for (int r = 0; r < 4; ++r) sums[i][r] = _mm512_dpbusd_epi32(sums[i][r], vector, weight[r]);
  }
}

// Of vector i from sums + i * stride on.
template <int kCount>
SWIZZLE_INLINE void ProductsOfFourRows(const uint8_t* vectors, const int8_t* weights, int64_t cols, int64_t stride,
                                       int32_t* sums) {
  __m512i of[kCount][4];
  HWY_UNROLL(4)
  for (int i = 0; i < kCount; ++i) of[i][0] = of[i][1] = of[i][2] = of[i][3] = _mm512_setzero_si512();
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes) AddFourRows<kCount>(~__mmask64{0}, vectors + c, weights + c, cols, of);
  if (c < cols) AddFourRows<kCount>(BytesFrom(c, cols), vectors + c, weights + c, cols, of);
  HWY_UNROLL(4)
  for (int i = 0; i < kCount; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + i * stride), SumsOfFour(of[i]));
  }
}

int32_t Product(const uint8_t* vector, const int8_t* weights, int64_t cols) {
  __m512i of = _mm512_setzero_si512();
  for (int64_t c = 0; c < cols; c += kLanes) {
    const __mmask64 inside = BytesFrom(c, cols);
    const __m512i weight = _mm512_maskz_loadu_epi8(inside, weights + c);
    of = _mm512_dpbusd_epi32(of, _mm512_maskz_loadu_epi8(inside, vector + c), weight);
  }
  return _mm512_reduce_add_epi32(of);
}

void Products(const uint8_t* vectors, int64_t count, const int8_t* weights, int64_t rows, int64_t cols, int32_t* sums) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const int8_t* const from = weights + row * cols;
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) ProductsOfFourRows<4>(vectors + i * cols, from, cols, rows, sums + i * rows + row);
    for (; i < count; ++i) ProductsOfFourRows<1>(vectors + i * cols, from, cols, rows, sums + i * rows + row);
  }
  for (; row < rows; ++row) {
    for (int64_t i = 0; i < count; ++i) sums[i * rows + row] = Product(vectors + i * cols, weights + row * cols, cols);
  }
}

void Add(const uint8_t* a, const uint8_t* b, int64_t count, const SumSteps& steps, uint8_t* to) {
  // The offset has the zero point already.
  OutputSteps bounds;
  bounds.low = steps.output.low;
  bounds.high = steps.output.high;
  const StepVectors vectors(bounds);
  const __m512 a_scale = _mm512_set1_ps(steps.a_scale), b_scale = _mm512_set1_ps(steps.b_scale);
  const __m512 offset = _mm512_set1_ps(steps.offset);
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; i += kLanes) {
    const __mmask64 inside = BytesFrom(i, count);
    const Interleaved x = InterleaveRows(_mm512_maskz_loadu_epi8(inside, a + i), zero, zero, zero);
    Interleaved y = {{zero, zero, zero, zero}};
    if (b != nullptr) y = InterleaveRows(_mm512_maskz_loadu_epi8(inside, b + i), zero, zero, zero);
    __m512i step[4];
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(y.of[j]), b_scale, offset);
      step[j] = _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(x.of[j]), a_scale, value));
    }
    _mm512_mask_storeu_epi8(to + i, inside, PackSteps(step, vectors));
  }
}

constexpr ByteCells CellsWith(decltype(ByteCells::gather) gather,
                              decltype(ByteCells::direct_depthwise) direct_depthwise) {
  return {.quads = Quads,
          .blocks = Blocks,
          .interleave = Interleave,
          .gather = gather,
          .depthwise = Depthwise,
          .direct_depthwise = direct_depthwise,
          .products = Products,
          .quantise = N_AVX3::QuantiseRun,
          .dequantise = N_AVX3::DequantiseRun,
          .add = Add,
          .largest = Largest,
          .sum = Sum};
}

}  // namespace

constinit const ByteCells kByteCells = CellsWith(Gather, nullptr);

}  // namespace swizzle::cpu::vnni

namespace swizzle::cpu::vbmi {
constinit const ByteCells kByteCells = vnni::CellsWith(Gather, DirectDepthwise);
}  // namespace swizzle::cpu::vbmi
SWIZZLE_AFTER_VNNI
