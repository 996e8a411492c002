#include "kernels/reference/layout.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::reference {
namespace {

constexpr int64_t kBlock = 16;

// One position's elements: channel c stands at first + c / 16 * block_stride + c % 16 * channel_stride.
struct Elements {
  int64_t first;
  int64_t channel_stride;
  int64_t block_stride;

  int64_t At(int64_t channel) const {
    return first + channel / kBlock * block_stride + channel % kBlock * channel_stride;
  }
};

Elements PanelElements(const Extent& extent, int64_t position) {
  const PanelGrid grid(extent.positions());
  int64_t panel = position / kMaxPanelWidth;  // or a later one
  while (grid.Begin(panel + 1) <= position) ++panel;
  const int64_t begin = grid.Begin(panel);
  return {begin * extent.channels + position - begin, grid.Width(panel), grid.Width(panel) * kBlock};
}

Elements ElementsOf(const Extent& extent, Layout layout, int64_t position) {
  const int64_t plane = extent.plane();
  const int64_t image = position / plane;
  const int64_t in_plane = position % plane;
  switch (layout) {
    case Layout::kNchw:
      return {image * extent.channels * plane + in_plane, plane, plane * kBlock};
    case Layout::kPanels:
      return PanelElements(extent, position);
    case Layout::kBlocked16:
      return {(image * CeilDiv(extent.channels, kBlock) * plane + in_plane) * kBlock, 1, plane * kBlock};
    case Layout::kRows: {
      const int64_t stride = RowStride(extent.positions());
      return {position, stride, stride * kBlock};
    }
    case Layout::kBatched: {
      const int64_t stride = RowStride(BatchedPositions(extent));
      return {in_plane * RoundUp(extent.batch, kBatchUnit) + image, stride, stride * kBlock};
    }
    case Layout::kNhwc:
      return {position * extent.channels, 1, kBlock};
    case Layout::kFullPanels:
      return {position / kMaxPanelWidth * kMaxPanelWidth * extent.channels + position % kMaxPanelWidth, kMaxPanelWidth,
              kMaxPanelWidth * kBlock};
  }
  return {};
}

// Calls visit(index in NCHW, offset in the layout) for every element.
template <typename Visit>
void ForEachElement(const Extent& extent, Layout layout, const Visit& visit) {
  for (int64_t position = 0; position < extent.positions(); ++position) {
    const Elements nchw = ElementsOf(extent, Layout::kNchw, position);
    const Elements elements = ElementsOf(extent, layout, position);
    for (int64_t channel = 0; channel < extent.channels; ++channel) visit(nchw.At(channel), elements.At(channel));
  }
}

}  // namespace

int64_t ElementOffset(const Extent& extent, Layout layout, int64_t channel, int64_t position) {
  return ElementsOf(extent, layout, position).At(channel);
}

void ToLayout(std::span<const float> nchw, const Extent& extent, Layout layout, float spare, std::span<float> buffer) {
  std::fill(buffer.begin(), buffer.end(), layout == Layout::kBlocked16 ? 0.0f : spare);
  ForEachElement(extent, layout, [&](int64_t index, int64_t offset) { buffer[offset] = nchw[index]; });
}

std::vector<float> FromLayout(std::span<const float> buffer, const Extent& extent, Layout layout) {
  std::vector<float> nchw(extent.positions() * extent.channels);
  ForEachElement(extent, layout, [&](int64_t index, int64_t offset) { nchw[index] = buffer[offset]; });
  return nchw;
}

}  // namespace swizzle::reference
