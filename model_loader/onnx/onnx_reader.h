// Reads an ONNX model into a Graph, trusting nothing in the file.
//
// Accepted: opsets 11 to 17 of the default domain, the operators of graph/operators.h, FP32 inputs whose dimension 0 is
// the batch (free or fixed) and whose other dimensions are fixed, initializers as raw or typed data inside the file.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_READER_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "model_loader/graph/graph.h"

namespace swizzle {

inline constexpr int64_t kMinOpset = 11;
inline constexpr int64_t kMaxOpset = 17;

struct ReadOptions {
  int64_t max_model_bytes = (int64_t{1} << 31) - 1;   // the most a protobuf message can have
  int64_t max_tensor_bytes = int64_t{1} << 30;        // one initializer or constant
  int max_nodes = 1 << 16;
  int max_outputs = 1 << 10;
};

// The graph as the file has it, verified (graph/verify.h); initializers are constants. INVALID_ARGUMENT if the file is
// malformed or beyond a limit, UNIMPLEMENTED if it is well formed but uses what is not supported; both name where.
StatusOr<Graph> ReadOnnx(std::span<const std::byte> model, const ReadOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_READER_H_
