#include "kernels/base/layout.h"

#include "kernels/base/integers.h"

namespace swizzle {
namespace {

constexpr int64_t kChannelBlock = 16;

}  // namespace

int64_t LayoutElements(const Extent& extent, Layout layout) {
  switch (layout) {
    case Layout::kNchw:
    case Layout::kNhwc:
      return extent.positions() * extent.channels;
    case Layout::kPanels:
      return PanelGrid(extent.positions()).padded_positions() * extent.channels;
    case Layout::kBlocked16:
      return extent.positions() * RoundUp(extent.channels, kChannelBlock);
    case Layout::kRows:
      return RowStride(extent.positions()) * extent.channels;
    case Layout::kBatched:
      return RowStride(BatchedPositions(extent)) * extent.channels;
    case Layout::kFullPanels:
      return FullPanels(extent.positions()) * kMaxPanelWidth * extent.channels;
  }
  return 0;
}

}  // namespace swizzle
