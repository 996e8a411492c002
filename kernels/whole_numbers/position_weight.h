// A weight of whole numbers whose input has no scale that is known beforehand: models that are quantised dynamically.
// Each position of the input is then quantised by what is in it, one token by itself. Where a
// model says one scale for the whole tensor (ONNX's DynamicQuantizeLinear) that would depend on what else is in the
// batch, and be coarser: a token's range is at most the tensor's, so that each step is at most as long.
//
//   bytes of a position: x = min(round(value / scale + zero_point), 255), for its range with 0 in 255 steps
//   sum = sum of w * x over a row: exact
//   y   = fma(float(sum) * scale of the row, scale, fma(-sum of the row's weights, scale * zero_point, bias))
//
// What is packed is made from it. Value type.
#ifndef SWIZZLE_KERNELS_WHOLE_NUMBERS_POSITION_WEIGHT_H_
#define SWIZZLE_KERNELS_WHOLE_NUMBERS_POSITION_WEIGHT_H_

#include <vector>

#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle {

struct PositionWeight {
  ByteWeight bytes;         // with starts of 0; scales are the weight's own
  std::vector<float> bias;  // by row
  std::vector<float> sums;  // of each row's weights, in real numbers
};

// Whether the weight is of signed bytes, and the input of no whole numbers.
bool HoldsPositionBytes(const Weight& weight, const Problem& problem);

// INVALID_ARGUMENT where the weight is not of signed bytes.
StatusOr<PositionWeight> MakePositionWeight(const Weight& weight);

// The same for weights that MakeWideByteWeight() takes, and as it makes them.
bool HoldsWidePositionBytes(const Weight& weight, const Problem& problem);
StatusOr<PositionWeight> MakeWidePositionWeight(const Weight& weight);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_WHOLE_NUMBERS_POSITION_WEIGHT_H_
