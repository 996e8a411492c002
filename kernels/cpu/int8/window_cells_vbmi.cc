// Windows with VBMI: a vpermt2b takes 64 bytes from any places of 128.
#include <algorithm>
#include <bit>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/window_pieces-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu::vbmi {
namespace {

using namespace vnni;  // NOLINT(google-build-using-namespace): VBMI is VNNI and more

// kPanels: of kFullPanels, which has no bytes outside.
template <bool kPanels>
SWIZZLE_INLINE __m512i ReadPiece(const Piece& piece, const uint8_t* from) {
  if constexpr (kPanels) {
    return _mm512_permutex2var_epi8(Load(from + piece.begin), piece.index, Load(from + piece.second));
  } else {
    const __m512i first = _mm512_maskz_loadu_epi8(piece.first_bytes, from + piece.begin);
    const __m512i second = _mm512_maskz_loadu_epi8(piece.second_bytes, from + piece.second);
    return _mm512_permutex2var_epi8(first, piece.index, second);
  }
}

// All channels of a tap.
template <bool kPanels>
void GatherTap(const ByteSource& source, const TapPieces& tap, const ByteColumns& columns, uint8_t* to) {
  const uint8_t* from = source.data + columns.first_channel * source.channel_stride;
  const __m512i fill = _mm512_set1_epi8(static_cast<char>(columns.fill));
  uint8_t* const end = to + columns.channels * kLanes;
  if (tap.count == 1) {
    const Piece piece = tap.pieces[0];
    for (; to != end; to += kLanes, from += source.channel_stride) {
      _mm512_store_si512(to, _mm512_mask_mov_epi8(fill, piece.lanes, ReadPiece<kPanels>(piece, from)));
    }
    return;
  }
  if (tap.count == 2) {
    const Piece a = tap.pieces[0], b = tap.pieces[1];
    for (; to != end; to += kLanes, from += source.channel_stride) {
      const __m512i bytes = _mm512_mask_mov_epi8(fill, a.lanes, ReadPiece<kPanels>(a, from));
      _mm512_store_si512(to, _mm512_mask_mov_epi8(bytes, b.lanes, ReadPiece<kPanels>(b, from)));
    }
    return;
  }
  for (; to != end; to += kLanes, from += source.channel_stride) {
    __m512i bytes = fill;
    for (int p = 0; p < tap.count; ++p) {
      bytes = _mm512_mask_mov_epi8(bytes, tap.pieces[p].lanes, ReadPiece<kPanels>(tap.pieces[p], from));
    }
    _mm512_store_si512(to, bytes);
  }
}

}  // namespace

void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns) {
  TapPieces pieces;
  __m512i positions[4];
  HWY_UNROLL(4)
  for (int q = 0; q < 4; ++q) positions[q] = _mm512_loadu_si512(lanes.offset + int64_t{16} * q);
  vnni::ForEachTap(source, window, lanes, columns, [&](int64_t base, uint64_t read, uint8_t* to) {
    vnni::PlanTap(source, positions, base, read, pieces);
    if (source.panels) {
      GatherTap<true>(source, pieces, columns, to);
    } else {
      GatherTap<false>(source, pieces, columns, to);
    }
  });
}

namespace {

// What a row of the window reads of a channel for a panel of outputs: 64 + kernel_w - 1 neighbours, which lie in two
// panels, or reach over both ends of one. One byte of the two vectors is the fill, for taps outside the plane.
struct ShiftedRow {
  __m512i index[4];              // of the four taps of each lane of interleaved sums
  int64_t first, second, third;  // panels' offsets of the first channel
  __mmask64 first_bytes, second_bytes, third_bytes;
};

ShiftedRow PlanShiftedRow(const ByteSource& source, const WindowPlace& place, const ChannelTaps& taps, int64_t row) {
  const WindowLanes& lanes = *place.lanes;
  const int64_t begin = lanes.base + row * source.width;
  const int64_t at = begin & (kLanes - 1);
  const int64_t panel = (begin - at) / kLanes;
  const int64_t panels = source.bytes / (source.channels * kLanes);
  const auto offset = [&](int64_t p) { return std::clamp<int64_t>(p, 0, panels - 1) * source.channels * kLanes; };
  const bool spans_two = at + kLanes + taps.kernel_w - 1 <= 2 * kLanes;
  ShiftedRow planned;
  int64_t fill = 0;
  if (spans_two) {
    planned.first = offset(panel);
    planned.second = planned.third = offset(panel + 1);
    // Byte 0 is not read unless the first panel is read from its start.
    fill = at == 0 ? 2 * kLanes - 1 : 0;
    planned.first_bytes = at == 0 ? ~__mmask64{0} : ~__mmask64{1};
    planned.second_bytes = ~__mmask64{0} >> (at == 0 ? 1 : 0);
    planned.third_bytes = 0;
  } else {
    planned.first = offset(panel + 1);
    planned.second = offset(panel);  // its end, behind the fill
    planned.third = offset(panel + 2);
    fill = kLanes + kLanes / 2 - 1;
    planned.first_bytes = ~__mmask64{0};
    planned.second_bytes = ~__mmask64{0} << (kLanes / 2);
    planned.third_bytes = ~__mmask64{0} >> (kLanes / 2 + 1);
  }
  // Which taps of which positions are inside the plane, interleaved as the sums are; and which byte each would be.
  const __m512i all = _mm512_set1_epi8(-1), zero = _mm512_setzero_si512();
  const auto inside = [&](int tap) {
    return tap < taps.kernel_w ? _mm512_maskz_mov_epi8(lanes.rows[row] & lanes.columns[tap], all) : zero;
  };
  const Interleaved valid = InterleaveRows(inside(0), inside(1), inside(2), inside(3));
  alignas(64) int8_t positions[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) positions[lane] = static_cast<int8_t>(lane);
  const __m512i first =
      _mm512_add_epi8(_mm512_load_si512(positions), _mm512_set1_epi8(static_cast<char>(spans_two ? at : at - kLanes)));
  const __m512i one = _mm512_set1_epi8(1), two = _mm512_set1_epi8(2), three = _mm512_set1_epi8(3);
  const Interleaved bytes =
      InterleaveRows(first, _mm512_add_epi8(first, one), _mm512_add_epi8(first, two), _mm512_add_epi8(first, three));
  const __m512i outside = _mm512_set1_epi8(static_cast<char>(fill));
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    planned.index[j] = _mm512_mask_mov_epi8(outside, _mm512_movepi8_mask(valid.of[j]), bytes.of[j]);
  }
  return planned;
}

// Three rows, whose indices stay in registers.
template <Tail kTail>
void RunShifted(const ByteSource& source, const WindowPlace& place, const ChannelTaps& taps, const PanelBytes& panel,
                const OutputSteps& steps) {
  constexpr int kRows = 3;
  const StepVectors vectors(steps);
  const __m512i fill = _mm512_set1_epi8(static_cast<char>(place.fill));
  const ShiftedRow rows[kRows] = {PlanShiftedRow(source, place, taps, 0), PlanShiftedRow(source, place, taps, 1),
                                  PlanShiftedRow(source, place, taps, 2)};
  const bool has_third = (rows[0].third_bytes | rows[1].third_bytes | rows[2].third_bytes) != 0;
  const uint8_t* from = source.data + place.first_channel * kLanes;
  const int32_t* weight = taps.weights;
  for (int64_t channel = 0; channel < taps.channels; ++channel, from += kLanes) {
    Sums sums = StartFrom(taps.start[channel]);
    HWY_UNROLL(3)
    for (int i = 0; i < kRows; ++i) {
      const ShiftedRow& row = rows[i];
      const __m512i first = _mm512_mask_loadu_epi8(fill, row.first_bytes, from + row.first);
      __m512i second = _mm512_mask_loadu_epi8(fill, row.second_bytes, from + row.second);
      if (has_third) second = _mm512_mask_loadu_epi8(second, row.third_bytes, from + row.third);
      const Interleaved x = {{_mm512_permutex2var_epi8(first, row.index[0], second),
                              _mm512_permutex2var_epi8(first, row.index[1], second),
                              _mm512_permutex2var_epi8(first, row.index[2], second),
                              _mm512_permutex2var_epi8(first, row.index[3], second)}};
      AddProducts(x, _mm512_set1_epi32(*weight++), sums);
    }
    StoreRow<kTail>(sums, taps.scale[channel], channel, panel, steps, vectors);
  }
}

// Whether an output position's taps are neighbours of the same position of the input, in rows that RunShifted has.
bool IsShifted(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == 3 && window.kernel_w <= 4 && window.stride_h == 1 && window.stride_w == 1 &&
         window.dilation_h == 1 && window.dilation_w == 1 && problem.input.height == problem.output.height &&
         problem.input.width == problem.output.width;
}

// What 16 neighbouring outputs read of a quad of taps in one row of the window: the bytes of four taps of a position
// are neighbours, as vpdpbusd takes them.
struct QuadPieces {
  uint16_t first, end;  // of all pieces
  __mmask64 outside;    // bytes of taps that no piece reads
};

// Where 16 neighbouring outputs read a quad of taps: planned at once, since the lanes' distances are known.
class QuadPlanner {
 public:
  QuadPlanner(const ByteSource& source, const WindowPlace& place, int64_t unit)
      : source_(source),
        dilation_(place.problem->window().dilation_w),
        panels_(source.bytes / (source.channels * kLanes)),
        offsets_(_mm512_loadu_si512(place.lanes->offset + int64_t{16} * unit)),
        tap_(_mm512_set1_epi32(0x03020100 * static_cast<int32_t>(dilation_))) {
    _mm512_store_si512(offset_, offsets_);
  }

  // Of taps from `base` on: their bytes that are inside the plane. Returns the pieces' number.
  int Plan(int64_t base, uint64_t read, Piece* pieces) const {
    int count = 0;
    while (read != 0) {
      Piece& piece = pieces[count++];
      const int byte = std::countr_zero(read), lane = byte / 4;
      // Where no tap is skipped, those before the first one that is read are outside in every lane of its row.
      const int64_t tap = dilation_ == 1 ? byte % 4 : 0;
      const int64_t begin = (base + offset_[lane] + tap) & ~(kLanes - 1);
      const __m512i distance = _mm512_sub_epi32(offsets_, _mm512_set1_epi32(static_cast<int32_t>(begin - base)));
      const auto reach = static_cast<int32_t>(2 * kLanes - 3 * dilation_);
      const auto near =
          static_cast<__mmask16>(_mm512_cmplt_epi32_mask(distance, _mm512_set1_epi32(reach)) & (0xffff << lane));
      // The distance in each byte of its lane; those below 0 are not read.
      const __m512i low_bytes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);
      piece.index = _mm512_add_epi8(_mm512_shuffle_epi8(distance, low_bytes), tap_);
      piece.lanes = read & _pdep_u64(near, uint64_t{0x1111111111111111}) * 0xf;
      piece.begin = PanelAt(begin / kLanes);
      piece.second = PanelAt(begin / kLanes + 1);
      read &= ~piece.lanes;
    }
    return count;
  }

 private:
  // Outside nothing is read: any panel will do.
  int64_t PanelAt(int64_t panel) const {
    return std::clamp<int64_t>(panel, 0, panels_ - 1) * source_.channels * kLanes;
  }

  const ByteSource& source_;
  const int64_t dilation_, panels_;
  const __m512i offsets_, tap_;
  alignas(64) int32_t offset_[16];
};

// A panel's pieces: [16 positions][row of the window][quad].
class StridedPlan {
 public:
  static constexpr int kMostQuads = 64, kMostPieces = 96;

  // False where there are too many, or windows are too wide.
  bool Make(const ByteSource& source, const WindowPlace& place, const ChannelTaps& taps) {
    const Window& window = place.problem->window();
    const WindowLanes& lanes = *place.lanes;
    const int64_t row_quads = CeilDiv(taps.kernel_w, int64_t{4});
    if (4 * taps.kernel_h * row_quads > kMostQuads || 3 * window.dilation_w >= kLanes) return false;
    int pieces_before = 0;
    for (int unit = 0; unit < 4; ++unit) {
      const QuadPlanner planner(source, place, unit);
      for (int64_t i = 0; i < taps.kernel_h; ++i) {
        for (int64_t quad = 0; quad < row_quads; ++quad) {
          uint64_t read = 0, all = 0;
          for (int64_t t = 0; t < 4 && 4 * quad + t < taps.kernel_w; ++t) {
            all |= uint64_t{0x1111111111111111} << t;
            const uint64_t lanes_read = (lanes.rows[i] & lanes.columns[4 * quad + t]) >> (16 * unit) & 0xffff;
            read |= _pdep_u64(lanes_read, uint64_t{0x1111111111111111} << t);
          }
          const int64_t base = lanes.base + i * window.dilation_h * source.width + 4 * quad * window.dilation_w;
          const auto first = static_cast<uint16_t>(pieces_before);
          pieces_before += planner.Plan(base, read, pieces_ + pieces_before);
          if (pieces_before > kMostPieces) return false;
          quads_[quads_count_++] = {first, static_cast<uint16_t>(pieces_before), all & ~read};
        }
      }
    }
    return true;
  }

  const Piece* pieces() const { return pieces_; }
  const QuadPieces* quads() const { return quads_; }

 private:
  static constexpr int kMostOfQuad = 16;  // one for each lane

  Piece pieces_[kMostPieces + kMostOfQuad];
  QuadPieces quads_[kMostQuads];
  int quads_count_ = 0;
};

// Some channels at once, so that what a piece is read by stays in registers. kQuads: of a channel, or 0 for any number.
template <int kQuads, int kChannels>
SWIZZLE_INLINE void RunStridedChannels(const StridedPlan& plan, const ChannelTaps& taps, int64_t quads,
                                       const uint8_t* from, int64_t channel, Sums* sums, uint8_t fill_byte) {
  const __m512i fill = _mm512_set1_epi8(static_cast<char>(fill_byte));
  if (kQuads != 0) quads = kQuads;
  const int32_t* const weight = taps.weights + channel * quads;
  const QuadPieces* quad = plan.quads();
  HWY_UNROLL(1)
  for (int unit = 0; unit < 4; ++unit) {
    __m512i of[kChannels];
    HWY_UNROLL(8)
    for (int c = 0; c < kChannels; ++c) of[c] = _mm512_set1_epi32(taps.start[channel + c]);
    HWY_UNROLL(1)
    for (int64_t q = 0; q < quads; ++q, ++quad) {
      HWY_UNROLL(1)
      for (int p = quad->first; p < quad->end; ++p) {
        const Piece& piece = plan.pieces()[p];
        const __m512i index = piece.index;
        const __mmask64 lanes = piece.lanes;
        const uint8_t *const first = from + piece.begin, *const second = from + piece.second;
        HWY_UNROLL(8)
        for (int c = 0; c < kChannels; ++c) {
          const __m512i x =
              _mm512_maskz_permutex2var_epi8(lanes, Load(first + c * kLanes), index, Load(second + c * kLanes));
          of[c] = _mm512_dpbusd_epi32(of[c], x, _mm512_set1_epi32(weight[c * quads + q]));
        }
      }
      if (quad->outside == 0) continue;
      const __m512i x = _mm512_maskz_mov_epi8(quad->outside, fill);
      HWY_UNROLL(8)
      for (int c = 0; c < kChannels; ++c) {
        of[c] = _mm512_dpbusd_epi32(of[c], x, _mm512_set1_epi32(weight[c * quads + q]));
      }
    }
    HWY_UNROLL(8)
    for (int c = 0; c < kChannels; ++c) sums[c].of[unit] = of[c];
  }
}

template <int kQuads>
void RunStrided(const ByteSource& source, const StridedPlan& plan, const WindowPlace& place, const ChannelTaps& taps,
                const PanelBytes& panel, const OutputSteps& steps) {
  constexpr int kTogether = 8;
  const StepVectors vectors(steps);
  // Sums are of neighbours here: packed, dwords stand transposed.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const int64_t quads = taps.kernel_h * CeilDiv(taps.kernel_w, int64_t{4});
  const uint8_t* from = source.data + place.first_channel * kLanes;
  for (int64_t channel = 0; channel < taps.channels;) {
    Sums sums[kTogether];
    int together = 1;
    if (taps.channels - channel >= kTogether) {
      together = kTogether;
      RunStridedChannels<kQuads, kTogether>(plan, taps, quads, from, channel, sums, place.fill);
    } else {
      RunStridedChannels<kQuads, 1>(plan, taps, quads, from, channel, sums, place.fill);
    }
    for (int c = 0; c < together; ++c, ++channel, from += kLanes) {
      const __m512i bytes = BytesOf<false>(sums[c], taps.scale[channel], nullptr, vectors);
      _mm512_store_si512(panel.bytes + channel * kLanes, _mm512_permutexvar_epi32(order, bytes));
    }
  }
}

}  // namespace

bool DirectDepthwise(const ByteSource& source, const WindowPlace& place, const ChannelTaps& taps,
                     const PanelBytes& panel, const OutputSteps& steps) {
  if (IsShifted(*place.problem)) {
    if (panel.residual != nullptr) {
      RunShifted<Tail::kResidual>(source, place, taps, panel, steps);
    } else {
      RunShifted<Tail::kBytes>(source, place, taps, panel, steps);
    }
    return true;
  }
  StridedPlan plan;
  if (panel.residual != nullptr || !plan.Make(source, place, taps)) return false;
  if (taps.kernel_h == 3 && taps.kernel_w <= 4) {
    RunStrided<3>(source, plan, place, taps, panel, steps);
  } else {
    RunStrided<0>(source, plan, place, taps, panel, steps);
  }
  return true;
}

}  // namespace swizzle::cpu::vbmi
SWIZZLE_AFTER_VNNI
