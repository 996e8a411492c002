// The inner parts of the kernels of bytes, on one panel of 64 positions at a time, for each instruction set: what
// threads, panels and slices there are is decided in ordinary sources, which call these by the table.
//
// Rows of panels are 64 bytes on 64-byte boundaries. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_BYTE_CELLS_H_
#define SWIZZLE_KERNELS_CPU_INT8_BYTE_CELLS_H_

#include <array>
#include <cstdint>

#include "kernels/cpu/int8/byte_blocks.h"
#include "kernels/cpu/int8/byte_loops.h"
#include "kernels/cpu/int8/quad_weight.h"
#include "kernels/cpu/int8/window_lanes.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {

// Where the 64 positions of a full panel lie in kPanels of real numbers, a unit of kPositionUnit at a time: row 0, and
// how far rows are apart. Null where there are no such positions.
struct RealUnits {
  static constexpr int kUnits = kMaxPanelWidth / kPositionUnit;
  std::array<float*, kUnits> first = {};
  std::array<int64_t, kUnits> stride = {};
};

// A panel of operands, from row 0 on. The output is `bytes` or `reals`.
struct PanelBytes {
  const uint8_t* columns = nullptr;
  const uint8_t* residual = nullptr;
  uint8_t* bytes = nullptr;
  const RealUnits* reals = nullptr;
  int32_t* sums = nullptr;             // [row][64], where they wait between parts; in no order
  int64_t positions = kMaxPanelWidth;  // what comes after them need not be computed
};

// Some channels that are summed over taps, from the first of them on: rows [tap][channel][64] of columns.
struct ChannelTaps {
  const uint8_t* columns = nullptr;
  int64_t channels = 0;
  int64_t kernel_h = 0, kernel_w = 0;
  const int32_t* weights = nullptr;  // [channel][row of the window][quad of its taps]
  const int32_t* start = nullptr;    // of each channel's sum
  const float* scale = nullptr;
};

// Where a panel's windows read, from some channel on, and what they read outside.
struct WindowPlace {
  const Problem* problem = nullptr;
  const WindowLanes* lanes = nullptr;
  int64_t first_channel = 0;
  uint8_t fill = 0;
};

struct ByteCells {
  // Sparse rows. columns: as they are; interleaved for blocks.
  void (*quads)(const QuadRows& rows, const PanelBytes& panel, const OutputSteps& steps);
  // Dense rows. columns: interleaved.
  void (*blocks)(const BlockRows& rows, const PanelBytes& panel, const OutputSteps& steps);
  // Of each four rows, as many bytes in the order that `blocks` reads; `to` may be `from`.
  void (*interleave)(int64_t quads, const uint8_t* from, uint8_t* to);
  // The columns of a window.
  void (*gather)(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns);
  // Of each channel: output, and a residual, are rows of the panel from the first channel on.
  void (*depthwise)(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps);
  // The same without columns, over kFullPanels; false where this window is none that it takes. May be null.
  bool (*direct_depthwise)(const ByteSource& source, const WindowPlace& place, const ChannelTaps& taps,
                           const PanelBytes& panel, const OutputSteps& steps);
  // Of each of `count` vectors of `cols` bytes with each of `rows` rows of weights, one after another: sums
  // [vector][row].
  void (*products)(const uint8_t* vectors, int64_t count, const int8_t* weights, int64_t rows, int64_t cols,
                   int32_t* sums);
  decltype(&N_AVX3::QuantiseRun) quantise;
  decltype(&N_AVX3::DequantiseRun) dequantise;
  decltype(&N_AVX3::AddRun) add;
  decltype(&N_AVX3::LargestOfRows) largest;
  decltype(&N_AVX3::SumRun) sum;
};

SWIZZLE_DECLARE_PER_TARGET(extern const ByteCells kByteCells;)
// With VNNI beside AVX-512, and with VBMI, too, where windows are faster.
namespace vnni {
extern const ByteCells kByteCells;
}
namespace vbmi {
extern const ByteCells kByteCells;
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_BYTE_CELLS_H_
