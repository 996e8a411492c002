// Writes a network as an ONNX model of opset 13, for other engines: quantised values stand between QuantizeLinear and
// DequantizeLinear, weights with whole numbers are INT8 behind a DequantizeLinear, their biases INT32.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_WRITER_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_WRITER_H_

#include <cstddef>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

// Read again (ReadOnnx, passes, lowering) it is the same network but for names. UNIMPLEMENTED for layers of token
// sequences, GELU, scales per channel of activations, and inputs of bytes that are not real numbers by a Cast;
// RESOURCE_EXHAUSTED if it is too large for one file. REQUIRES: a validated network.
StatusOr<std::vector<std::byte>> WriteOnnx(const Network& network);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_WRITER_H_
