// What an operator does to its sums before it stores them. Plain values.
#ifndef SWIZZLE_KERNELS_OPERATOR_EPILOGUE_H_
#define SWIZZLE_KERNELS_OPERATOR_EPILOGUE_H_

#include <limits>
#include <optional>

#include "kernels/base/quantised.h"
#include "kernels/operator/attributes.h"

namespace swizzle {

// What is applied to a sum before it is stored: y = function(clamp(sum + bias + residual, low, high)). The bias is part
// of the weight. ReLU is {0, inf}, ReLU6 {0, 6}, none {-inf, inf}.
struct Epilogue {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  bool residual = false;                  // inputs[1] of the kernel, in the output's layout, is added
  std::optional<Function> function = {};  // of kConv, on the host of kDepthwiseConv (plan/fuse_layers.h)
  // What the output may be stored as: y / scale + zero_point, rounded to the nearest, ties to even, and held to the
  // type's range. Kernels are asked for it whose output is of that type (AsRowSolves).
  std::optional<Quantised> requantise = {};

  bool Clamps() const {
    return low > -std::numeric_limits<float>::infinity() || high < std::numeric_limits<float>::infinity();
  }
  bool operator==(const Epilogue&) const = default;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_EPILOGUE_H_
