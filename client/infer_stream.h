// A stream of a client: ModelStreamInfer by gRPC's callback interface.
//
// The call keeps itself until gRPC is done with it; the handle that callers have only refers to it. Thread-safe.
#ifndef SWIZZLE_CLIENT_INFER_STREAM_H_
#define SWIZZLE_CLIENT_INFER_STREAM_H_

#include <functional>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "client/client.h"
#include "grpcpp/grpcpp.h"
#include "proto/grpc_service.grpc.pb.h"

namespace swizzle::client {

struct StreamSetting {
  inference::GRPCInferenceService::Stub& stub;              // outlives the call
  std::unique_ptr<grpc::ClientContext> context;             // as the call is to be made
  std::function<absl::Status(const grpc::Status&)> status;  // what callers are told of gRPC's
  absl::AnyInvocable<void() &&> gone;                       // runs last: the client may go
};

std::unique_ptr<InferStream> StartStream(StreamSetting setting, StreamCallbacks callbacks);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_INFER_STREAM_H_
