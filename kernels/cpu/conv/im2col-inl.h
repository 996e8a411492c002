// Gathers the columns of a convolution (im2col.h) with this target's vectors. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_IM2COL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_IM2COL_INL_H_
#undef SWIZZLE_KERNELS_CPU_IM2COL_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_IM2COL_INL_H_
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "kernels/cpu/conv/im2col.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Lane by lane: for strides that no shuffle undoes, and where masked loads read all lanes.
template <typename T>
HWY_INLINE FloatVector LoadLanes(const T* from, uint32_t lanes, int64_t stride, int64_t bits_per_lane) {
  HWY_ALIGN float values[kLanes] = {};
  for (int64_t l = 0; l < kLanes; ++l) {
    if (lanes >> (l * bits_per_lane) & 1) values[l] = FloatOf(from[l * stride]);
  }
  return hn::Load(FloatTag(), values);
}

// One piece and the lanes that it reads. kStride: the window's, or 0 for any other.
template <int kStride, typename T>
class PieceLoader {
 public:
  PieceLoader(const PanelColumns& columns, const PanelColumns::Piece& piece, int64_t channel)
      : from_(columns.input<T>() + piece.offset + channel * piece.channel_stride),
        channel_stride_(piece.channel_stride),
        stride_(columns.stride()),
        lanes_(piece.lanes) {
#if HWY_TARGET != HWY_EMU128
    const auto* bits = reinterpret_cast<const uint8_t*>(&piece.lanes);
    low_ = hn::LoadMaskBits(FloatTag(), bits);
    high_ = hn::LoadMaskBits(FloatTag(), bits + (kStride == 2 ? kLanes / 8 : 0));
#endif
#if HWY_TARGET == HWY_AVX2
    begin_ = columns.input<T>();
    last_ = begin_ + columns.input_elements() - (kStride == 2 ? 2 : 1) * kLanes;
    if constexpr (sizeof(T) == sizeof(Bfloat16) && kStride == 2) {
      uint32_t pairs = 0;
      for (int64_t l = 0; l < kLanes; ++l) pairs |= (piece.lanes >> 2 * l & 1) << l;
      low_ = hn::LoadMaskBits(FloatTag(), reinterpret_cast<const uint8_t*>(&pairs));
    }
#endif
  }

  // Of one channel after the other; zero in lanes that are not of this piece.
  HWY_INLINE FloatVector Next() {
    const T* from = from_;
    from_ += channel_stride_;
#if HWY_TARGET == HWY_EMU128
    return LoadLanes(from, lanes_, stride_, kStride == 2 ? 2 : 1);
#else
    if constexpr (kStride == 0) return LoadLanes(from, lanes_, stride_, 1);
    return Lanes(from);
#endif
  }

 private:
#if HWY_TARGET != HWY_EMU128
  HWY_INLINE FloatVector Lanes(const float* from) const {
    const FloatTag d;
    const FloatVector low = hn::MaskedLoad(low_, d, from);
    if constexpr (kStride != 2) return low;
    return hn::ConcatEven(d, hn::MaskedLoad(high_, d, from + kLanes), low);
  }
#endif
#if HWY_TARGET == HWY_AVX3
  HWY_INLINE FloatVector Lanes(const Bfloat16* from) const {
    if constexpr (kStride != 2) return MaskedLoad(low_, from);
    // The lower halves of pairs.
    const __m512i pairs = _mm512_maskz_loadu_epi16(lanes_, from);
    return FloatVector{_mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16))};
  }
#elif HWY_TARGET == HWY_AVX2
  // There are no masked loads of 16 bits: all lanes are read where they are in the input.
  HWY_INLINE FloatVector Lanes(const Bfloat16* from) const {
    if (from < begin_ || from > last_) return LoadLanes(from, lanes_, stride_, kStride);
    FloatVector even, odd;
    if constexpr (kStride == 2) {
      LoadPairs(from, even, odd);
    } else {
      even = LoadAll(from);
    }
    return hn::IfThenElseZero(low_, even);
  }
  const T* begin_;
  const T* last_;
#endif

  const T* from_;
  int64_t channel_stride_;
  [[maybe_unused]] int64_t stride_;
  [[maybe_unused]] uint32_t lanes_;
  [[maybe_unused]] FloatMask low_, high_;
};

// The rows of one tap and some channels, `row_step` floats apart. Vector by vector, so that masks stay in registers; a
// vector is seldom of more than two pieces, and each after the first is added to what is there.
template <int kStride, typename T>
void GatherTap(const PanelColumns& columns, int64_t tap, int64_t channel, int64_t channels, float* to,
               int64_t row_step) {
  const FloatTag d;
  bool first = true;
  for (const PanelColumns::Piece& piece : columns.Pieces(tap)) {
    PieceLoader<kStride, T> loader(columns, piece, channel);
    float* row = to + piece.position;
    if (first) {
      for (int64_t c = 0; c < channels; ++c, row += row_step) hn::Store(loader.Next(), d, row);
    } else {
      for (int64_t c = 0; c < channels; ++c, row += row_step)
        hn::Store(hn::Or(loader.Next(), hn::Load(d, row)), d, row);
    }
    first = piece.last;
  }
}

template <int kStride, typename T>
void GatherBlock(const PanelColumns& columns, int64_t begin, int64_t end) {
  const int64_t taps = columns.taps();
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t channel = (begin + taps - 1 - tap) / taps;
    const int64_t channels = (end + taps - 1 - tap) / taps - channel;
    float* to = columns.columns() + (channel * taps + tap - begin) * columns.width();
    GatherTap<kStride, T>(columns, tap, channel, channels, to, taps * columns.width());
  }
}

template <typename T>
void GatherRows(const PanelColumns& columns, int64_t begin, int64_t end) {
  if (columns.stride() == 1) return GatherBlock<1, T>(columns, begin, end);
  if (columns.stride() == 2) return GatherBlock<2, T>(columns, begin, end);
  GatherBlock<0, T>(columns, begin, end);
}

// Transposes the blocks that hold the channels [begin, end), and returns the first of these.
HWY_INLINE const float* TransposeBlocks(const PanelColumns& columns, int64_t panel, int64_t begin, int64_t end) {
  const int64_t width = columns.Width(panel);
  float* to = columns.columns();
  for (int64_t block = begin / kBlockChannels; block * kBlockChannels < end; ++block, to += kBlockChannels * width) {
    int64_t position = 0;
    while (position < width) {
      const Slab slab = columns.BlockAt(panel, position, block);
      if (slab.positions == 0) break;
      TransposeHere(columns.input<float>() + slab.offset, slab.position_stride, to + position, width, slab.positions,
                    kBlockChannels);
      position += slab.positions;
    }
    for (int64_t c = 0; position < width && c < kBlockChannels; ++c) {
      std::fill(to + c * width + position, to + (c + 1) * width, 0.0f);
    }
  }
  return columns.columns() + begin % kBlockChannels * width;
}

// Rows [begin, end) of an output panel, each as wide as the panel; spare positions hold zero or, where the columns are
// the input itself, what that holds. Valid until the next call. REQUIRES: the workspace was sized for end - begin rows.
HWY_INLINE const float* ColumnRows(PanelColumns& columns, int64_t panel, int64_t begin, int64_t end) {
  if (columns.are_input_rows()) {
    if (!columns.widens()) return columns.InputRow<float>(panel, begin);
    Widen(columns.InputRow<Bfloat16>(panel, begin), (end - begin) * columns.Width(panel), columns.columns());
    return columns.columns();
  }
  if (columns.are_blocks()) return TransposeBlocks(columns, panel, begin, end);
  columns.SetPanel(panel, kLanes);
  if (columns.widens()) {
    GatherRows<Bfloat16>(columns, begin, end);
  } else {
    GatherRows<float>(columns, begin, end);
  }
  return columns.columns();
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
