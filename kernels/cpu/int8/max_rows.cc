#include "kernels/cpu/int8/max_rows.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/base/layout.h"

namespace swizzle::cpu {

bool MaxBands::Fit(const Window& window) {
  return int64_t{window.kernel_w - 1} * window.dilation_w < kMaxPanelWidth && window.stride_w < kMaxPanelWidth;
}

MaxBands::MaxBands(const Problem& problem) {
  constexpr int64_t kChannelBytes = 2048;  // so that all channels leave the first cache half empty
  const Window& window = problem.window();
  const int64_t reach = int64_t{window.kernel_h - 1} * window.dilation_h + 1;  // rows of the plane
  const int64_t more = (kChannelBytes / problem.input.width - reach) / window.stride_h;
  rows = std::clamp<int64_t>(more + 1, 1, problem.output.height);
  const int64_t inputs = std::min((rows - 1) * window.stride_h + reach, problem.input.height);
  // A row that begins anywhere in a vector, and what the last row's vectors read behind it.
  channel_bytes = RoundUp(inputs * problem.input.width + 3 * kMaxPanelWidth, kMaxPanelWidth);
}

}  // namespace swizzle::cpu
