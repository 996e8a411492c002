// Orders to load and unload models as clients of HTTP write them: {"parameters": {"config": "...", "file:1/model.onnx":
// "BASE64", "unload_dependents": true}}. They become gRPC's messages, which are then checked as if they had come so.
//
// JSON is read by a walk that keeps no tree of it: what it takes is bounded by the text. Functions only.
#ifndef SWIZZLE_SERVER_REST_ORDER_JSON_H_
#define SWIZZLE_SERVER_REST_ORDER_JSON_H_

#include <string_view>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"

namespace swizzle {

// What reading and keeping an order takes of memory for each byte of its text: the reader's copy of a file, which grows
// by doubling, and the file.
inline constexpr int64_t kOrderJsonMemory = 3;

// INVALID_ARGUMENT, which says what is wrong. An empty text is an order without parameters.
StatusOr<inference::RepositoryModelLoadRequest> ReadLoadOrder(std::string_view text, std::string_view model);
StatusOr<inference::RepositoryModelUnloadRequest> ReadUnloadOrder(std::string_view text, std::string_view model);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_ORDER_JSON_H_
