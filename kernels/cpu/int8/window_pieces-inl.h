// Where the lanes of a panel find the bytes of a tap, for kernels with VNNI. Include it after vnni-inl.h.
#ifndef SWIZZLE_KERNELS_CPU_INT8_WINDOW_PIECES_INL_H_
#define SWIZZLE_KERNELS_CPU_INT8_WINDOW_PIECES_INL_H_

#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu::vnni {

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

// positions: what lanes read of the first channel, less `base`, where `read` has their bit. In window_cells_vnni.cc.
void PlanTap(const ByteSource& source, const __m512i (&positions)[4], int64_t base, uint64_t read, TapPieces& tap);

// Calls gather(base, lanes that read, to) for each tap of the window.
template <typename GatherTap>
void ForEachTap(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns,
                const GatherTap& gather) {
  uint8_t* to = columns.to;
  for (int32_t i = 0; i < window.kernel_h; ++i) {
    for (int32_t j = 0; j < window.kernel_w; ++j, to += columns.channels * kLanes) {
      const int64_t base = lanes.base + int64_t{i} * window.dilation_h * source.width + int64_t{j} * window.dilation_w;
      gather(base, lanes.rows[i] & lanes.columns[j], to);
    }
  }
}

}  // namespace swizzle::cpu::vnni
SWIZZLE_AFTER_VNNI

#endif  // SWIZZLE_KERNELS_CPU_INT8_WINDOW_PIECES_INL_H_
