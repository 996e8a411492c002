// The geometry of convolutions and pools over any number of spatial dimensions, and the table of what each output
// position reads, which makes 1-D, 3-D, strided, dilated and padded windows one loop.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_WINDOWS_WINDOW_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_WINDOWS_WINDOW_H_

#include <cstdint>
#include <string>

#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

// All lists have one entry per spatial dimension, checked and at most 2^30.
struct Window {
  Shape input;
  Shape kernel, strides, dilations;
  Shape pads_begin, pads_end;
  Shape output;

  int64_t taps() const { return ProductOf(kernel, 0, static_cast<int64_t>(kernel.size())); }
  int64_t positions() const { return ProductOf(output, 0, static_cast<int64_t>(output.size())); }
  int64_t plane() const { return ProductOf(input, 0, static_cast<int64_t>(input.size())); }
  // Whether output position p reads input position p and nothing else.
  bool IsPointwise() const;
};

// From the node's attributes kernel_shape (`kernel` where it is left out), strides, dilations, pads, auto_pad and
// ceil_mode, over an input of [N, C, spatial...]. INVALID_ARGUMENT where they break ONNX's rules.
StatusOr<Window> ReadWindow(Call& call, const Shape& input, const Shape& kernel);

// The same for ConvTranspose, whose window goes from its output, here called input, to its input, here called output.
StatusOr<Window> ReadTransposedWindow(Call& call, const Shape& input, const Shape& kernel);

// On the host, INT32 [taps, positions]: the place in the input plane that a tap of a position reads, -1 in the padding.
StatusOr<Array> Taps(Call& call, const Window& window);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_WINDOWS_WINDOW_H_
