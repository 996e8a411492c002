// Where some channels and positions of an activation lie in memory.
#ifndef SWIZZLE_KERNELS_CPU_LAYOUT_SLAB_H_
#define SWIZZLE_KERNELS_CPU_LAYOUT_SLAB_H_

#include <cstdint>

#include "kernels/base/layout.h"

namespace swizzle::cpu {

// Channels of a block of kBlocked16.
inline constexpr int64_t kBlockChannels = 16;

// Element (c, p) is at offset + c * channel_stride + p * position_stride, in elements. One of the strides is 1.
struct Slab {
  int64_t offset;
  int64_t channel_stride;
  int64_t position_stride;
  int64_t positions;  // how far the pattern reaches
};

// The slab that starts at `position` and at `channel`, a multiple of kBlockChannels; in kBlocked16 it has that many.
// layout: all but kRows.
Slab SlabAt(const Extent& extent, Layout layout, int64_t position, int64_t channel);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_LAYOUT_SLAB_H_
