// What layers with weights read while the interpreter runs a model on calibration data.
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_MOMENTS_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_MOMENTS_H_

#include "model_loader/interpreter/values/call.h"
#include "model_loader/pruning/least_squares.h"

namespace swizzle {

// Of the vectors that input 1, a weight, is multiplied with in this call of Conv (of one group), Gemm or MatMul:
// patches in the order of the weight's elements (channels, then taps), or rows. UNIMPLEMENTED for other operators, for
// stacks of weights, and for weights that are not input 1. Pure.
StatusOr<InputMoments> MomentsOf(interpreter::Call& call);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_MOMENTS_H_
