// What the 64 output positions of a full panel read of an activation of bytes: planned once a panel, for all channels.
//
// Lane l reads, at tap (i, j), position base + offset[l] + i * dilation_h * width + j * dilation_w of the input, if bit
// l is set in rows[i] and in columns[j]; else the tap falls outside the plane. Those that are read rise with the lanes.
// Plain values; an object belongs to one thread.
#ifndef SWIZZLE_KERNELS_CPU_INT8_WINDOW_LANES_H_
#define SWIZZLE_KERNELS_CPU_INT8_WINDOW_LANES_H_

#include <cstdint>

#include "kernels/base/layout.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/operator/problem.h"

namespace swizzle::cpu {

struct WindowLanes {
  static constexpr int kMostTaps = 16;  // of a window, each way

  int64_t base = 0;  // may be negative: tap (0, 0) may be outside
  int32_t offset[kMaxPanelWidth] = {};
  uint64_t rows[kMostTaps] = {};
  uint64_t columns[kMostTaps] = {};
};

// Whether every panel of the problem can be planned.
bool HasWindowLanes(const Problem& problem);

// The panel's. Positions are those of the whole batch; in kNchw, elements of the first channel.
void PlanWindowLanes(const Problem& problem, int64_t panel, WindowLanes& lanes);

// An activation of bytes, as windows read it.
struct ByteSource {
  explicit ByteSource(const Problem& problem, const uint8_t* input);

  const uint8_t* data;
  bool panels;             // kFullPanels, else kNchw
  int64_t channels;        // of the activation
  int64_t channel_stride;  // bytes from a channel to the next
  int64_t bytes;           // of the activation
  int64_t width;           // of its plane
};

// Some channels of a panel's columns: rows [tap][channel][64] of bytes, the taps outside the plane filled.
struct ByteColumns {
  int64_t first_channel, channels;
  uint8_t fill;
  uint8_t* to;
};

SWIZZLE_DECLARE_PER_TARGET(void GatherWindow(const ByteSource& source, const Window& window, const WindowLanes& lanes,
                                             const ByteColumns& columns);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_WINDOW_LANES_H_
