// Raises the opset of a model whose operators were spelled otherwise then: what adds operators of a newer one needs it.
// Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_CONVERT_OPSET_H_
#define SWIZZLE_MODEL_LOADER_ONNX_CONVERT_OPSET_H_

#include <cstdint>

#include "kernels/base/status.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// The latest opset that models are converted to.
inline constexpr int64_t kLastConvertedOpset = 13;

// Leaves a model of this opset, or of a later one. Names of nodes and values stay; lists that were attributes become
// initializers, and what an operator no longer does alone is done by two. UNIMPLEMENTED, naming operator and node, for
// what has no like there, and for models below opset 6.
// REQUIRES: opset is at most kLastConvertedOpset.
Status ConvertOpset(onnx::ModelProto& model, int64_t opset);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_CONVERT_OPSET_H_
