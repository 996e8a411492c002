// From the bytes of a model, or its file, to ONNX's message. Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_PARSE_MODEL_H_
#define SWIZZLE_MODEL_LOADER_ONNX_PARSE_MODEL_H_

#include <cstdint>

#include "kernels/base/status.h"
#include "model_loader/onnx/onnx_reader.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// INVALID_ARGUMENT for what is no model, has more bytes or is truncated, UNIMPLEMENTED for graphs that lie too deep
// within each other; of a file that it cannot be read, too. Nothing of what it says has been checked.
StatusOr<onnx::ModelProto> ParseModel(const OnnxSource& source, int64_t most_bytes = ReadOptions().max_model_bytes);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_PARSE_MODEL_H_
