#include "kernels/cpu/int8/stem_columns.h"

#include <algorithm>

namespace swizzle::cpu {
namespace {

constexpr int64_t kPositions = kMaxPanelWidth / StemQuad::kTaps;  // of one vector of indices

// Between the bytes that the last position reads at the last tap of a quad, and the first at the first.
int64_t Reach(const Window& window) {
  return (kPositions - 1) * window.stride_w + int64_t{StemQuad::kTaps - 1} * window.dilation_w;
}

}  // namespace

bool StemColumns::Fit(const Window& window) {
  // A quad stands in two rows of a window that is narrower than three no longer.
  return window.kernel_w >= StemQuad::kTaps - 1 && Reach(window) < kMaxPanelWidth;
}

StemColumns::StemColumns(const Window& window, int64_t channels) {
  const int64_t columns = channels * window.taps();
  for (int64_t begin = 0; begin < columns; begin += StemQuad::kTaps) {
    StemQuad quad;
    int source = 0;
    for (int t = 0; t < StemQuad::kTaps; ++t) {
      const int64_t column = std::min(begin + t, columns - 1), tap = column % window.taps();
      const StemQuad::Tap of = {static_cast<int32_t>(column / window.taps()),
                                static_cast<int32_t>(tap / window.kernel_w),
                                static_cast<int32_t>(tap % window.kernel_w)};
      if (t == 0) quad.first_tap = {of, of};
      if (of.column == 0 && t > 0 && column == begin + t) quad.first_tap[source = 1] = of;
      quad.taps[t] = of;
      for (int64_t p = 0; p < kPositions; ++p) {
        const int64_t from_first = int64_t{of.column - quad.first_tap[source].column} * window.dilation_w;
        quad.index[p * StemQuad::kTaps + t] =
            static_cast<uint8_t>(source * kMaxPanelWidth + p * window.stride_w + from_first);
      }
    }
    quads_.push_back(quad);
  }
}

ByteWeight InOrderOfImage(ByteWeight weight, const Window& window) {
  const auto taps = static_cast<int32_t>(window.taps());
  const auto channels = static_cast<int32_t>(weight.cols / taps);
  for (auto& row : weight.entries) {
    for (ByteWeight::Entry& entry : row) entry.column = entry.column % channels * taps + entry.column / channels;
    std::ranges::sort(row, {}, &ByteWeight::Entry::column);
  }
  return weight;
}

}  // namespace swizzle::cpu
