// The convolution of integers that quantised operators share.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_WINDOWS_CONVOLUTION_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_WINDOWS_CONVOLUTION_H_

#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

// As the node's attributes have it, of two FP32 arrays of integers of magnitude at most 255; exact, as INT32.
StatusOr<Array> IntegerConvolution(Call& call, const Array& x, const Array& w);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_WINDOWS_CONVOLUTION_H_
