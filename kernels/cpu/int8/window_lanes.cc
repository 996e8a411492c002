#include "kernels/cpu/int8/window_lanes.h"

#include <algorithm>
#include <limits>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

uint64_t LaneBits(int64_t begin, int64_t end) {
  if (begin >= end) return 0;
  const uint64_t below = end >= 64 ? ~uint64_t{0} : (uint64_t{1} << end) - 1;
  return below & (~uint64_t{0} << begin);
}

// Of `count` inputs that are `stride` apart, the first at `begin`, the ones in [0, extent): bits from `lane` on.
uint64_t InsideBits(int64_t begin, int64_t stride, int64_t extent, int64_t lane, int64_t count) {
  const auto before = [=](int64_t limit) {
    if (begin >= limit) return int64_t{0};
    return std::min(stride == 1 ? limit - begin : CeilDiv(limit - begin, stride), count);
  };
  return LaneBits(lane + before(0), lane + before(extent));
}

}  // namespace

bool HasWindowLanes(const Problem& problem) {
  const Window& window = problem.window();
  // Offsets within a panel are 32-bit.
  const int64_t reach = kMaxPanelWidth * (problem.input.plane() * problem.input.channels + problem.input.plane());
  return window.kernel_h <= WindowLanes::kMostTaps && window.kernel_w <= WindowLanes::kMostTaps &&
         reach < std::numeric_limits<int32_t>::max();
}

void PlanWindowLanes(const Problem& problem, int64_t panel, WindowLanes& lanes) {
  const Extent &in = problem.input, &out = problem.output;
  const Window& window = problem.window();
  const int64_t image_elements = in.plane() * (problem.from.layout == Layout::kNchw ? in.channels : 1);
  std::fill_n(lanes.rows, window.kernel_h, 0);
  std::fill_n(lanes.columns, window.kernel_w, 0);
  const int64_t first = panel * kMaxPanelWidth;
  const int64_t count = std::min(kMaxPanelWidth, out.positions() - first);
  int64_t image = first / out.plane();
  int64_t row = first % out.plane() / out.width;
  int64_t column = first % out.width;
  for (int64_t lane = 0, run; lane < count; lane += run) {  // each run in one row of the plane
    run = std::min(count - lane, out.width - column);
    const int64_t top = row * window.stride_h - window.pad_top;
    const int64_t left = column * window.stride_w - window.pad_left;
    for (int32_t i = 0; i < window.kernel_h; ++i) {
      const int64_t y = top + int64_t{i} * window.dilation_h;
      if (y >= 0 && y < in.height) lanes.rows[i] |= LaneBits(lane, lane + run);
    }
    for (int32_t j = 0; j < window.kernel_w; ++j) {
      lanes.columns[j] |= InsideBits(left + int64_t{j} * window.dilation_w, window.stride_w, in.width, lane, run);
    }
    const int64_t begin = image * image_elements + top * in.width + left;
    if (lane == 0) lanes.base = begin;
    const auto offset = static_cast<int32_t>(begin - lanes.base);
    for (int64_t l = 0; l < run; ++l) lanes.offset[lane + l] = offset + static_cast<int32_t>(l * window.stride_w);
    column = 0;
    if (++row == out.height) {
      row = 0;
      ++image;
    }
  }
  for (int64_t lane = count; lane < kMaxPanelWidth; ++lane) lanes.offset[lane] = lanes.offset[count - 1];
}

ByteSource::ByteSource(const Problem& problem, const uint8_t* input)
    : data(input),
      panels(problem.from.layout == Layout::kFullPanels),
      channels(problem.input.channels),
      channel_stride(panels ? kMaxPanelWidth : problem.input.plane()),
      bytes(LayoutElements(problem.input, problem.from.layout)),
      width(problem.input.width) {}

}  // namespace swizzle::cpu
