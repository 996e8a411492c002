// Windows of convolutions and pools: from ONNX's attributes (auto_pad, ceil_mode) to explicit ones, and as attributes
// of canonical nodes.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_WINDOWS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_WINDOWS_H_

#include <array>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// A window over one plane and what it makes of it.
struct ResolvedWindow {
  Window window;
  int64_t output_height = 0;
  int64_t output_width = 0;
  // Zeros at the top, left, bottom and right that the window's input has first, where there are any.
  std::array<int64_t, 4> padded_before{};

  bool PadsBefore() const { return padded_before != std::array<int64_t, 4>{}; }
};

// The window of an ONNX Conv, MaxPool or AveragePool over an input of shape [batch, channels, H, W]. `kernel` is [h,
// w], of a convolution's weight; a pool passes {} and has it as an attribute. ceil_mode becomes padding at the bottom
// and right, without windows that would start there; count_include_pad does not count it, so that padding which it does
// count comes before. INVALID_ARGUMENT if attributes have wrong lengths or values or the window does not fit;
// UNIMPLEMENTED for ranks other than 4.
StatusOr<ResolvedWindow> ResolveWindow(const Node& node, const Shape& input, const Shape& kernel);

// A canonical node's window, to and from its attributes kernel_shape, strides, pads, dilations, count_include_pad.
// REQUIRES of WindowOf: SetWindow made them.
void SetWindow(Node& node, const Window& window);
Window WindowOf(const Node& node);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_WINDOWS_H_
