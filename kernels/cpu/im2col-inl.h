// Gathers the columns of a convolution (im2col.h) with this target's vectors. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_IM2COL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_IM2COL_INL_H_
#undef SWIZZLE_KERNELS_CPU_IM2COL_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_IM2COL_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/cpu/im2col.h"
#include "kernels/cpu/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Lane by lane: for strides that no shuffle undoes, and where masked loads read all lanes.
HWY_INLINE FloatVector LoadLanes(const float* from, uint32_t lanes, int64_t stride, int64_t bits_per_lane) {
  HWY_ALIGN float values[kLanes] = {};
  for (int64_t l = 0; l < kLanes; ++l) {
    if (lanes >> (l * bits_per_lane) & 1) values[l] = from[l * stride];
  }
  return hn::Load(FloatTag(), values);
}

// What a piece holds, zero in all other lanes; `from` is lane 0's input.
template <int kStride>
HWY_INLINE FloatVector LoadPiece(const PanelColumns::Piece& piece, const float* from, int64_t stride) {
#if HWY_TARGET == HWY_EMU128
  return LoadLanes(from, piece.lanes, stride, kStride == 2 ? 2 : 1);
#else
  const FloatTag d;
  const auto* bits = reinterpret_cast<const uint8_t*>(&piece.lanes);
  if constexpr (kStride == 0) return LoadLanes(from, piece.lanes, stride, 1);
  const FloatVector low = hn::MaskedLoad(hn::LoadMaskBits(d, bits), d, from);
  if constexpr (kStride != 2) return low;
  const FloatVector high = hn::MaskedLoad(hn::LoadMaskBits(d, bits + kLanes / 8), d, from + kLanes);
  return hn::ConcatEven(d, high, low);
#endif
}

// kStride: the window's, or 0 for any other.
template <int kStride>
void GatherBlock(const PanelColumns& columns, int64_t begin, int64_t end) {
  const FloatTag d;
  const int64_t taps = columns.taps();
  int64_t channel = begin / taps;
  int64_t tap = begin % taps;
  float* to = columns.columns();
  for (int64_t k = begin; k < end; ++k, to += columns.width()) {
    FloatVector row = hn::Zero(d);
    for (const PanelColumns::Piece& piece : columns.Pieces(tap)) {
      const float* from = columns.input() + piece.offset + channel * piece.channel_stride;
      row = hn::Or(row, LoadPiece<kStride>(piece, from, columns.stride()));
      if (!piece.last) continue;
      hn::Store(row, d, to + piece.position);
      row = hn::Zero(d);
    }
    if (++tap == taps) {
      tap = 0;
      ++channel;
    }
  }
}

// Rows [begin, end) of an output panel, each as wide as the panel; spare positions hold zero or, where the columns are
// the input itself, what that holds. Valid until the next call. REQUIRES: the workspace was sized for end - begin rows.
HWY_INLINE const float* ColumnRows(PanelColumns& columns, int64_t panel, int64_t begin, int64_t end) {
  if (columns.is_direct()) return columns.DirectRow(panel, begin);
  columns.SetPanel(panel, kLanes);
  if (columns.stride() == 1) {
    GatherBlock<1>(columns, begin, end);
  } else if (columns.stride() == 2) {
    GatherBlock<2>(columns, begin, end);
  } else {
    GatherBlock<0>(columns, begin, end);
  }
  return columns.columns();
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
