// Values of parameters of requests and tensors. Header only; functions only.
#ifndef SWIZZLE_SERVER_RPC_INFER_PARAMETERS_H_
#define SWIZZLE_SERVER_RPC_INFER_PARAMETERS_H_

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// A non-negative integer, whichever of the two integer types carries it; INVALID_ARGUMENT, naming `key`, for others.
inline StatusOr<uint64_t> UnsignedParameter(std::string_view key, const inference::InferParameter& value) {
  using inference::InferParameter;
  if (value.parameter_choice_case() == InferParameter::kUint64Param) return value.uint64_param();
  if (value.parameter_choice_case() == InferParameter::kInt64Param && value.int64_param() >= 0) {
    return static_cast<uint64_t>(value.int64_param());
  }
  return InvalidArgument("parameter '", key, "' must be a non-negative integer");
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_INFER_PARAMETERS_H_
