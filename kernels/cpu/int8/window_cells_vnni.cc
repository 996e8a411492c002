// Windows with VNNI alone. Most taps read neighbours, which masked loads bring to their lanes; bytes from elsewhere
// come in words, of which one byte each is kept.
#include <algorithm>
#include <bit>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/window_pieces-inl.h"

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu::vnni {

void PlanTap(const ByteSource& source, const __m512i (&positions)[4], int64_t base, uint64_t read, TapPieces& tap) {
  tap.count = 0;
  alignas(64) int32_t offsets[kLanes];
  for (int q = 0; q < 4; ++q) _mm512_store_si512(offsets + int64_t{16} * q, positions[q]);
  while (read != 0) {
    Piece& piece = tap.pieces[tap.count++];
    int64_t begin = base + offsets[std::countr_zero(read)];
    if (source.panels) begin &= ~(kLanes - 1);
    const __m512i first = _mm512_set1_epi32(static_cast<int32_t>(begin - base));
    __m512i index = _mm512_setzero_si512();
    uint64_t lanes = 0;
    __m128i narrow[4];
    HWY_UNROLL(4)
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
      // Behind the last panel nothing is read: any other will do.
      const int64_t second = piece.begin + kLanes * source.channels;
      piece.second = second < source.bytes ? second : piece.begin;
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

namespace {

// Lanes that read a neighbour each, in their order: what panel, or plane, has them at how far from lane 0.
struct Neighbours {
  int64_t first, second;  // bytes from the first channel's panel, or plane, to what lane 0 would read
  __mmask64 first_lanes, second_lanes;
};

// Whether the lanes `read` are such.
bool PlanNeighbours(const ByteSource& source, const __m512i (&positions)[4], int64_t base, uint64_t read,
                    Neighbours& to) {
  if (read == 0) {
    to = {};
    return true;
  }
  alignas(64) int32_t offsets[kLanes];
  HWY_UNROLL(4)
  for (int q = 0; q < 4; ++q) _mm512_store_si512(offsets + int64_t{16} * q, positions[q]);
  const int lane = std::countr_zero(read);
  const __m512i shift = _mm512_set1_epi32(offsets[lane] - lane);
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  uint64_t near = 0;
  HWY_UNROLL(4)
  for (int q = 0; q < 4; ++q) {
    const __m512i expected = _mm512_add_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(16 * q)), shift);
    near |= uint64_t{_mm512_cmpeq_epi32_mask(positions[q], expected)} << (16 * q);
  }
  if ((read & ~near) != 0) return false;
  const int64_t begin = base + offsets[lane] - lane;
  if (!source.panels) {
    to = {begin, begin, read, 0};
    return true;
  }
  const int64_t at = begin & (kLanes - 1), panel_bytes = kLanes * source.channels;
  const int64_t first = (begin - at) / kLanes * panel_bytes + at;
  const uint64_t in_first = ~uint64_t{0} >> at;
  to = {first, first + panel_bytes - kLanes, read & in_first, read & ~in_first};
  return true;
}

void GatherNeighbours(const ByteSource& source, const Neighbours& tap, const ByteColumns& columns, uint8_t* to) {
  // Lanes that are not read may be outside of memory: addresses are numbers until then.
  // NOLINTBEGIN(performance-no-int-to-ptr)
  auto first = reinterpret_cast<uintptr_t>(source.data) + columns.first_channel * source.channel_stride + tap.first;
  auto second = reinterpret_cast<uintptr_t>(source.data) + columns.first_channel * source.channel_stride + tap.second;
  const __m512i fill = _mm512_set1_epi8(static_cast<char>(columns.fill));
  for (uint8_t* const end = to + columns.channels * kLanes; to != end; to += kLanes) {
    __m512i bytes = _mm512_mask_loadu_epi8(fill, tap.first_lanes, reinterpret_cast<const void*>(first));
    if (tap.second_lanes != 0) {
      bytes = _mm512_mask_loadu_epi8(bytes, tap.second_lanes, reinterpret_cast<const void*>(second));
    }
    _mm512_store_si512(to, bytes);
    first += source.channel_stride;
    second += source.channel_stride;
  }
  // NOLINTEND(performance-no-int-to-ptr)
}

// A choice of 64 bytes of 128, by words: which have the even bytes and the odd ones, and by how much these are moved.
struct WordChoice {
  explicit SWIZZLE_INLINE WordChoice(__m512i index) {
    const __m512i one = _mm512_set1_epi16(1), eight = _mm512_set1_epi16(8);
    const __m512i low = _mm512_and_si512(index, _mm512_set1_epi16(0xff)), high = _mm512_srli_epi16(index, 8);
    even_words = _mm512_srli_epi16(low, 1);
    odd_words = _mm512_srli_epi16(high, 1);
    even_down = _mm512_slli_epi16(_mm512_and_si512(low, one), 3);
    odd_up = _mm512_sub_epi16(eight, _mm512_slli_epi16(_mm512_and_si512(high, one), 3));
  }
  SWIZZLE_INLINE __m512i Of(__m512i first, __m512i second) const {
    constexpr __mmask64 kOdd = 0xaaaaaaaaaaaaaaaa;
    const __m512i even = _mm512_srlv_epi16(_mm512_permutex2var_epi16(first, even_words, second), even_down);
    const __m512i odd = _mm512_sllv_epi16(_mm512_permutex2var_epi16(first, odd_words, second), odd_up);
    return _mm512_mask_mov_epi8(even, kOdd, odd);
  }
  __m512i even_words, odd_words, even_down, odd_up;
};

// Of one piece. kInto: the other lanes have their bytes already.
template <bool kInto>
void GatherPiece(const ByteSource& source, const Piece& piece, const ByteColumns& columns, uint8_t* to) {
  const WordChoice choice(piece.index);
  const __m512i fill = _mm512_set1_epi8(static_cast<char>(columns.fill));
  const uint8_t* from = source.data + columns.first_channel * source.channel_stride;
  for (uint8_t* const end = to + columns.channels * kLanes; to != end; to += kLanes, from += source.channel_stride) {
    const __m512i first = _mm512_maskz_loadu_epi8(piece.first_bytes, from + piece.begin);
    const __m512i second = _mm512_maskz_loadu_epi8(piece.second_bytes, from + piece.second);
    const __m512i others = kInto ? Load(to) : fill;
    _mm512_store_si512(to, _mm512_mask_mov_epi8(others, piece.lanes, choice.Of(first, second)));
  }
}

void GatherPieces(const ByteSource& source, const TapPieces& tap, const ByteColumns& columns, uint8_t* to) {
  GatherPiece<false>(source, tap.pieces[0], columns, to);
  for (int p = 1; p < tap.count; ++p) GatherPiece<true>(source, tap.pieces[p], columns, to);
}

}  // namespace

void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns) {
  TapPieces pieces;
  Neighbours neighbours;
  __m512i positions[4];
  HWY_UNROLL(4)
  for (int q = 0; q < 4; ++q) positions[q] = _mm512_loadu_si512(lanes.offset + int64_t{16} * q);
  ForEachTap(source, window, lanes, columns, [&](int64_t base, uint64_t read, uint8_t* to) {
    if (PlanNeighbours(source, positions, base, read, neighbours)) {
      GatherNeighbours(source, neighbours, columns, to);
    } else {
      PlanTap(source, positions, base, read, pieces);
      GatherPieces(source, pieces, columns, to);
    }
  });
}

namespace {

template <Tail kTail>
void RunDepthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps) {
  const StepVectors vectors(steps);
  const int64_t row_quads = CeilDiv(taps.kernel_w, int64_t{4});
  const int64_t tap_bytes = taps.channels * kLanes;
  const int32_t* weight = taps.weights;
  for (int64_t channel = 0; channel < taps.channels; ++channel) {
    Sums sums = StartFrom(taps.start[channel]);
    const uint8_t* row = taps.columns + channel * kLanes;
    for (int64_t i = 0; i < taps.kernel_h; ++i, row += taps.kernel_w * tap_bytes) {
      for (int64_t quad = 0; quad < row_quads; ++quad) {
        const auto at = [&](int64_t t) {  // the last tap again where there are no more: its weights are zero
          return Load(row + std::min(4 * quad + t, taps.kernel_w - 1) * tap_bytes);
        };
        AddProducts(InterleaveRows(at(0), at(1), at(2), at(3)), _mm512_set1_epi32(*weight++), sums);
      }
    }
    StoreRow<kTail>(sums, taps.scale[channel], channel, panel, steps, vectors);
  }
}

}  // namespace

void Depthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps) {
  if (panel.residual != nullptr) return RunDepthwise<Tail::kResidual>(taps, panel, steps);
  RunDepthwise<Tail::kBytes>(taps, panel, steps);
}

void Largest(const uint8_t* rows, int64_t taps, int64_t stride, const OutputSteps& steps, uint8_t* to) {
  __m512i largest = _mm512_max_epu8(Load(rows), _mm512_set1_epi8(static_cast<char>(steps.low)));
  for (int64_t tap = 1; tap < taps; ++tap) largest = _mm512_max_epu8(largest, Load(rows + tap * stride));
  _mm512_store_si512(to, _mm512_min_epu8(largest, _mm512_set1_epi8(static_cast<char>(steps.high))));
}

int32_t Sum(const uint8_t* from, int64_t count) {
  __m512i sums = _mm512_setzero_si512();
  for (int64_t i = 0; i < count; i += kLanes) {
    const __m512i bytes = _mm512_maskz_loadu_epi8(BytesFrom(i, count), from + i);
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
  }
  return static_cast<int32_t>(_mm512_reduce_add_epi64(sums));
}

}  // namespace swizzle::cpu::vnni
SWIZZLE_AFTER_VNNI
