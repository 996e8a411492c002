// One axis of a window over a plane, in 64 bits: how many outputs it has, and whether each of them touches the plane.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_WINDOW_AXIS_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_WINDOW_AXIS_H_

#include <cstdint>

#include "kernels/operator/attributes.h"

namespace swizzle {

// Of kernels, strides, dilations and pads.
inline constexpr int64_t kMaxWindowExtent = int64_t{1} << 15;

struct WindowAxis {
  int64_t input, kernel, stride, pad_before, pad_after, dilation;

  bool InRange() const {
    const auto within = [](int64_t x, int64_t least) { return x >= least && x <= kMaxWindowExtent; };
    return within(kernel, 1) && within(stride, 1) && within(dilation, 1) && within(pad_before, 0) &&
           within(pad_after, 0);
  }
  // 0 or less where the window does not fit. REQUIRES: InRange().
  int64_t Output() const {
    const int64_t room = input + pad_before + pad_after - (dilation * (kernel - 1) + 1);
    return room < 0 ? 0 : room / stride + 1;
  }
  // Whether the window at output position `o` touches the plane.
  bool Touches(int64_t o) const {
    const int64_t start = o * stride - pad_before;
    const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    return first < kernel && start + first * dilation < input;
  }
  bool AllTouch() const {
    for (int64_t o = 0; o < Output(); ++o) {
      if (!Touches(o)) return false;
    }
    return true;
  }
};

inline WindowAxis VerticalAxis(const Window& w, int64_t height) {
  return {height, w.kernel_h, w.stride_h, w.pad_top, w.pad_bottom, w.dilation_h};
}

inline WindowAxis HorizontalAxis(const Window& w, int64_t width) {
  return {width, w.kernel_w, w.stride_w, w.pad_left, w.pad_right, w.dilation_w};
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_WINDOW_AXIS_H_
