// ModelStreamInfer: many requests on one call, answered in their order. Functions only.
#ifndef SWIZZLE_SERVER_RPC_STREAM_INFER_H_
#define SWIZZLE_SERVER_RPC_STREAM_INFER_H_

#include <grpcpp/grpcpp.h>

#include "server/rpc/infer_call.h"

namespace swizzle {

// Each request is an InferCall. What is wrong with one is its answer (`error_message`, with its id), and the stream
// goes on, unless the client has asked for the first error to end the stream, with its status (Triton's
// `triton_grpc_error: true` in the metadata). What is no message of the protocol ends the stream in any case, after the
// answers to what came before.
//
// Of one stream there are RpcLimits::max_stream_requests at a time, and of a connection's streams together max_streams,
// but one of each; the next is read once one of them is answered and its answer is sent. gRPC keeps `context` until the
// call is over.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartStreamInfer(InferCalls& calls,
                                                                              grpc::CallbackServerContext& context);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_STREAM_INFER_H_
