// Makes a vector of each sequence of tokens, of an encoder that gives their states: where no graph does, as of a packed
// network, or where none can be planned that does, as with the last token. Functions only.
#ifndef SWIZZLE_SERVER_MODEL_TOKEN_POOLING_H_
#define SWIZZLE_SERVER_MODEL_TOKEN_POOLING_H_

#include <string>

#include "kernels/base/tensor.h"
#include "model_loader/text/dense.h"
#include "model_loader/text/pooling.h"

namespace swizzle {

// Of states [rows, length, width], FP32, whose tokens are those where `mask`, INT64 or INT32 [rows, length], is not 0:
// their mean, or the first or the last of them, [rows, width]. Zeros of a row without tokens.
std::string PooledStates(text::Pooling pooling, const std::string& states, const Shape& shape, const TensorView& mask);

// Has vectors, FP32, as wide as the layer reads, go through it. REQUIRES: its activation is one that ReadDense takes.
void ApplyDense(const text::DenseLayer& layer, std::string& vectors);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_TOKEN_POOLING_H_
