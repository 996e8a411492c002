// How an activation lies in memory.
//
// Logically every activation is a matrix [channels, positions]; positions are batch x height x width. The physical
// layout is an attribute of each edge of a plan:
//
//   kNchw      [batch][channels][height*width]. How requests arrive and results leave. For height = width = 1 this is
//              a row-major [batch, channels] matrix.
//   kPanels    [panel][channels][panel width]: the positions of the whole batch, cut into panels of at most
//              kMaxPanelWidth positions, widths spread evenly in units of kPositionUnit. Sparse kernels stream it.
//   kBlocked16 [batch][ceil(channels/16)][height*width][16]: oneDNN's nChw16c. Padding channels hold zeros.
//   kRows      [channels][RowStride(positions)]: a row of all positions of the batch for each channel, which sparse
//              kernels on GPUs gather. Spare positions at the end of a row belong to no request.
//   kNhwc      [batch][height*width][channels]. Dense kernels on GPUs; on CPUs bytes, and planes of tokens.
//   kFullPanels [panel][channels][kMaxPanelWidth]: as kPanels, but every panel is full, the last one padded. Kernels of
//              whole numbers: a row of a panel is one aligned vector of bytes.
//   kBatched   [channels][RowStride(BatchedPositions)]: as kRows, but of a channel's positions the batch is innermost,
//              [height*width][batch, rounded up to kBatchUnit]: on GPUs, where windows then read whole 16 bytes
//              wherever they begin. Without a plane it is kRows.
//
// Rows and buffers count elements, of whatever type (storage.h).
//
// Every buffer starts on a kBufferAlignment boundary and has LayoutElements() elements, padding included. Spare
// positions of the last panel belong to no request; kernels may compute them, nobody reads them.
//
// Worked example, kPanels: 49 positions are 4 units of 16 (15 spare positions), one panel of 64. 196 positions are 13
// units, cut into 4 panels of 3, 3, 3 and 4 units: element (channel c, position 50) lies in panel 1 (positions 48-95)
// at float offset channels*48 + c*48 + 2.
#ifndef SWIZZLE_KERNELS_BASE_LAYOUT_H_
#define SWIZZLE_KERNELS_BASE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/base/integers.h"

namespace swizzle {

enum class Layout : uint8_t { kNchw, kPanels, kBlocked16, kRows, kNhwc, kFullPanels, kBatched };
inline constexpr int kLayoutCount = 7;

constexpr std::string_view LayoutName(Layout layout) {
  constexpr std::string_view kNames[kLayoutCount] = {"nchw", "panels",      "blocked16", "rows",
                                                     "nhwc", "full_panels", "batched"};
  return kNames[static_cast<size_t>(layout)];
}

inline constexpr int64_t kPositionUnit = 16;
inline constexpr int64_t kMaxPanelWidth = 64;
inline constexpr int64_t kBatchUnit = 8;
inline constexpr size_t kBufferAlignment = 64;
inline constexpr size_t kPitchAlignment = 16;  // bytes, of channels within a wider kNhwc

// The extent of one activation. A [batch, features] matrix has height = width = 1.
struct Extent {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t height = 1;
  int64_t width = 1;

  int64_t plane() const { return height * width; }
  int64_t positions() const { return batch * plane(); }
  bool operator==(const Extent&) const = default;
};

// Elements from one row of kRows to the next: 16 of a float type start on 32 bytes. Long rows of halves start on lines
// of 128 bytes: kernels that gather pieces of them else take up to 1.16 times as long (kernels/cuda/PERFORMANCE.md,
// Vectors of rows in half precision).
constexpr int64_t kLongRow = 512, kLineUnit = 64;
constexpr int64_t RowStride(int64_t positions) {
  return RoundUp(positions, positions < kLongRow ? kPositionUnit : kLineUnit);
}

// Positions of a row of kBatched, those included that round the batch up.
inline int64_t BatchedPositions(const Extent& extent) { return extent.plane() * RoundUp(extent.batch, kBatchUnit); }

// Panels of kFullPanels.
constexpr int64_t FullPanels(int64_t positions) { return CeilDiv(positions, kMaxPanelWidth); }

// Elements in a buffer of this extent and layout, padding included.
int64_t LayoutElements(const Extent& extent, Layout layout);

// The cut of `positions` into panels. Cheap to make and to ask: nothing divides, short of shifts. All members in
// positions unless named otherwise.
class PanelGrid {
 public:
  explicit PanelGrid(int64_t positions)
      : units_(CeilDiv(positions, kPositionUnit)),
        count_(CeilDiv(units_, kUnitsPerPanel)),
        missing_(count_ * kUnitsPerPanel - units_) {}

  int64_t count() const { return count_; }
  int64_t padded_positions() const { return units_ * kPositionUnit; }
  // units * panel / count units: as full panels would have it, less missing * panel / count, rounded up.
  int64_t Begin(int64_t panel) const {
    const int64_t part = missing_ * panel;
    const int64_t less = int64_t{part > 0} + int64_t{part > count_} + int64_t{part > 2 * count_};
    return (kUnitsPerPanel * panel - less) * kPositionUnit;
  }
  int64_t Width(int64_t panel) const { return Begin(panel + 1) - Begin(panel); }
  // The panel that holds `position`.
  int64_t PanelOf(int64_t position) const {
    const int64_t panel = position / kMaxPanelWidth;  // or the next one
    return Begin(panel + 1) <= position ? panel + 1 : panel;
  }

 private:
  static constexpr int64_t kUnitsPerPanel = kMaxPanelWidth / kPositionUnit;
  static_assert(kUnitsPerPanel == 4, "Begin counts at most 3 missing units");
  int64_t units_;
  int64_t count_;
  int64_t missing_;  // units, of full panels
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_LAYOUT_H_
