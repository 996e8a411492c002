// Resize with antialias: what an output position is made of widens as the result gets smaller.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_IMAGES_SMOOTHING_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_IMAGES_SMOOTHING_H_

#include <cstdint>
#include <functional>

#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

// How one dimension is resized.
struct SmoothAxis {
  int64_t from = 0, to = 0;
  double scale = 1.0;
  bool cubic = false;  // else linear
  float coefficient = -0.75f;
  bool exclude_outside = false;           // else what is outside is as the border
  std::function<double(int64_t)> source;  // of an output position
};

// Fills `y`, which is the FP32 array `x` but for dimension `d`. Neither is empty. UNIMPLEMENTED on a device.
StatusOr<Array> ResizeSmoothly(Call& call, const Array& x, int64_t d, Array y, const SmoothAxis& axis);

// Rounds FP32 elements to the nearest that `dtype`, an integer type, holds.
void RoundTo(DType dtype, Array& array);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_IMAGES_SMOOTHING_H_
