// The inner parts of kernels that take bytes by lanes (lane_weight.h): some positions of kNhwc, all of whose windows
// lie one behind the other, [window][position][64]. For AVX-512 with VNNI and VBMI. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_LANE_CELLS_H_
#define SWIZZLE_KERNELS_CPU_INT8_LANE_CELLS_H_

#include <cstdint>

#include "kernels/cpu/int8/lane_weight.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {

struct LanePositions {
  static constexpr int64_t kMost = 16;

  const uint8_t* windows = nullptr;   // those of the part; aligned to 64 bytes
  int64_t count = 0;                  // 1 to kMost
  bool paired = false;                // windows of 32 channels: two positions lie in 64 bytes; their count is even
  int32_t* sums = nullptr;            // of all channels, in the order of lanes, kMost of each 16; where there are parts
  const uint8_t* residual = nullptr;  // the first position's; null where none is added
  uint8_t* output = nullptr;          // the first position's
  int64_t channels = 0;               // of output and residual
};

// Adds a part to the sums of the chunk's channels at these positions, and after the last writes what they end in.
void RunLanes(const LaneChunk& chunk, const LanePositions& positions, const OutputSteps& steps);

// What a position reads: tap (i, j) if bit i is set in rows and bit j in columns, else what is outside.
struct LanePlace {
  const uint8_t* first = nullptr;  // tap (0, 0), which may be outside the input
  uint32_t rows = 0, columns = 0;
};

// How a convolution's windows are filled.
struct LaneFill {
  static constexpr int64_t kMostTaps = 32;  // each way

  const uint8_t* outside = nullptr;  // `channels` bytes
  int64_t channels = 0, kernel_h = 1, kernel_w = 1;
  int64_t row_bytes = 0, column_bytes = 0;  // from a tap to the next
  bool is_inside = false;                   // all taps are
  int64_t first_unit = 0, units = 0;        // of the part
};
// Writes the windows of `count` positions.
void FillWindows(const LaneFill& fill, const LanePlace* places, int64_t count, uint8_t* windows);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_LANE_CELLS_H_
