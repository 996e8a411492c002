// One spatial dimension of a convolution's or pool's window: what its padding and its output are. Pure values.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_WINDOW_AXIS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_WINDOW_AXIS_H_

#include <cstdint>
#include <vector>

#include "kernels/operator/attributes.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

enum class AutoPad { kExplicit, kValid, kSameUpper, kSameLower };

// The attribute auto_pad. INVALID_ARGUMENT, naming the node, where it is not known.
StatusOr<AutoPad> AutoPadOf(const Node& node);

// Of kernels, strides, dilations and pads in a network.
inline constexpr int64_t kMaxWindowExtent = int64_t{1} << 15;

// Numbers are at most 2^30, so that no product of two overflows.
struct WindowAxis {
  int64_t input, kernel, stride, dilation;
  int64_t before = 0, after = 0;  // padding

  int64_t Reach() const { return dilation * (kernel - 1) + 1; }
  // How far the window can move; below 0 it does not fit.
  int64_t Room() const { return input + before + after - Reach(); }
  int64_t Output() const { return Room() < 0 ? 0 : Room() / stride + 1; }

  // Whether a network may hold it.
  bool InRange() const;
  // Whether the window at output position `o`, or at each, touches the input rather than padding alone.
  // REQUIRES: InRange().
  bool Touches(int64_t o) const;
  bool AllTouch() const;

  // Whether ceil_mode adds an output, whose window the end cuts off. A window that would begin in the padding at the
  // end reads nothing and counts for none.
  bool HasCutWindow() const;
  // Pads the end so far that it doesn't; false if there was no such window.
  bool PadForCutWindow();

  // Shares `total` among both ends; the odd one goes to the end or, for kSameLower, to the beginning.
  void SplitPadding(int64_t total, AutoPad mode);
  // The padding that kSameUpper and kSameLower say: outputs are ceil(input / stride).
  void PadToSame(AutoPad mode);
};

// The two dimensions of a canonical window over a plane.
WindowAxis VerticalAxis(const Window& window, int64_t height);
WindowAxis HorizontalAxis(const Window& window, int64_t width);

// Pad's amounts, all before and then all after, of all dimensions from those of `axes`. INVALID_ARGUMENT unless there
// are two for each axis, and axes are among `rank`.
StatusOr<std::vector<int64_t>> PadsOfAll(const std::vector<int64_t>& given, const std::vector<int64_t>& axes,
                                         int64_t rank);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_WINDOW_AXIS_H_
