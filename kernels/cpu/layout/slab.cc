#include "kernels/cpu/layout/slab.h"

#include "kernels/base/integers.h"

namespace swizzle::cpu {

Slab SlabAt(const Extent& extent, Layout layout, int64_t position, int64_t channel) {
  const int64_t plane = extent.plane();
  const int64_t image = position / plane;
  const int64_t in_plane = position % plane;
  const int64_t to_end = plane == 1 ? extent.batch - image : plane - in_plane;
  switch (layout) {
    case Layout::kNchw: {
      const int64_t offset = (image * extent.channels + channel) * plane + in_plane;
      if (plane == 1) return {offset, 1, extent.channels, to_end};
      return {offset, plane, 1, to_end};
    }
    case Layout::kPanels: {
      const PanelGrid grid(extent.positions());
      const int64_t panel = grid.PanelOf(position);
      const int64_t begin = grid.Begin(panel);
      const int64_t width = grid.Width(panel);
      return {begin * extent.channels + channel * width + position - begin, width, 1, begin + width - position};
    }
    case Layout::kBlocked16: {
      const int64_t blocks = CeilDiv(extent.channels, kBlockChannels);
      const int64_t offset = ((image * blocks + channel / kBlockChannels) * plane + in_plane) * kBlockChannels;
      return {offset, 1, plane == 1 ? blocks * kBlockChannels : kBlockChannels, to_end};
    }
    case Layout::kFullPanels: {
      const int64_t in_panel = position % kMaxPanelWidth;
      return {((position - in_panel) * extent.channels + channel * kMaxPanelWidth) + in_panel, kMaxPanelWidth, 1,
              kMaxPanelWidth - in_panel};
    }
    case Layout::kNhwc:
      return {position * extent.channels + channel, 1, extent.channels, extent.positions() - position};
    case Layout::kRows:
    case Layout::kBatched:
      break;  // GPUs' alone: no row of the CPU's table has them
  }
  return {};
}

}  // namespace swizzle::cpu
