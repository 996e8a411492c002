// The walk of a window over one plane, shared by the convolution and pooling references.
#ifndef SWIZZLE_KERNELS_REFERENCE_SLIDING_WINDOW_H_
#define SWIZZLE_KERNELS_REFERENCE_SLIDING_WINDOW_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle::reference {

// Calls visit(tap, index) for each tap of the window at output (y, x) that falls inside the input plane; `tap` counts
// row-major over the window, `index` over the plane.
template <typename Visit>
void ForEachTap(const Problem& problem, int64_t y, int64_t x, const Visit& visit) {
  const Window& window = problem.window();
  for (int64_t i = 0; i < window.kernel_h; ++i) {
    for (int64_t j = 0; j < window.kernel_w; ++j) {
      const int64_t row = y * window.stride_h - window.pad_top + i * window.dilation_h;
      const int64_t column = x * window.stride_w - window.pad_left + j * window.dilation_w;
      if (row < 0 || row >= problem.input.height || column < 0 || column >= problem.input.width) continue;
      visit(i * window.kernel_w + j, row * problem.input.width + column);
    }
  }
}

// Calls visit(output index, image, channel, y, x) for each output element.
template <typename Visit>
void ForEachOutput(const Extent& output, const Visit& visit) {
  int64_t index = 0;
  for (int64_t image = 0; image < output.batch; ++image) {
    for (int64_t channel = 0; channel < output.channels; ++channel) {
      for (int64_t y = 0; y < output.height; ++y) {
        for (int64_t x = 0; x < output.width; ++x) visit(index++, image, channel, y, x);
      }
    }
  }
}

}  // namespace swizzle::reference

#endif  // SWIZZLE_KERNELS_REFERENCE_SLIDING_WINDOW_H_
