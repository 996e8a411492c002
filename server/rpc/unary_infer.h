// ModelInfer: one request, one answer. Functions only.
#ifndef SWIZZLE_SERVER_RPC_UNARY_INFER_H_
#define SWIZZLE_SERVER_RPC_UNARY_INFER_H_

#include <grpcpp/grpcpp.h>

#include "server/rpc/infer_call.h"

namespace swizzle {

// Answers one call; gRPC keeps `context`, `request` and `response` until it is over.
grpc::ServerUnaryReactor* StartInfer(InferCalls& calls, grpc::CallbackServerContext& context,
                                     const grpc::ByteBuffer& request, grpc::ByteBuffer& response);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_UNARY_INFER_H_
