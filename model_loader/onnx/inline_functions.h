// Puts the nodes of a model's own functions in place of the nodes that call them. Internal to model_loader/onnx.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_INLINE_FUNCTIONS_H_
#define SWIZZLE_MODEL_LOADER_ONNX_INLINE_FUNCTIONS_H_

#include <cstdint>

#include "kernels/base/status.h"
#include "onnx/onnx.pb.h"

namespace swizzle {

// What calls may become: functions call others, and a small file would else stand for any number of nodes.
struct InliningLimits {
  int max_nodes = 1 << 16;
  int max_depth = 32;                    // of calls within calls
  int64_t max_bytes = int64_t{1} << 30;  // of functions' bodies, each counted as often as it is called
};

// Leaves a model without functions. Names within a function get a prefix of the call's own; attributes that refer to
// the function's are the call's, or their default. INVALID_ARGUMENT for functions that call themselves, or are beyond
// the limits; UNIMPLEMENTED for one of another opset than the model's that has an operator which differs between the
// two.
Status InlineFunctions(onnx::ModelProto& model, const InliningLimits& limits = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_INLINE_FUNCTIONS_H_
