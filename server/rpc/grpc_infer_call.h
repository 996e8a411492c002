// What brings requests by gRPC: its context says who calls, and what comes beside the message. Header only.
#ifndef SWIZZLE_SERVER_RPC_GRPC_INFER_CALL_H_
#define SWIZZLE_SERVER_RPC_GRPC_INFER_CALL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "server/rpc/admission.h"
#include "server/rpc/infer_call.h"
#include "server/rpc/request_headers.h"

namespace swizzle {

// Thread-safe as InferCall is.
class GrpcInferCall : public InferCall {
 protected:
  // `context` and `request` outlive this.
  GrpcInferCall(InferCalls& calls, grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
                Carrier carrier)
      : InferCall(calls, request, carrier), context_(context) {}

  std::string Peer() const final { return context_.peer(); }

  grpc::CallbackServerContext& context_;

 private:
  std::string_view Header(std::string_view name) const final { return HeaderOf(context_, name); }
  std::string_view Shown() const final { return ShownBy(context_); }
  // gRPC keeps the deadline by the monotonic clock as well, and turns it into wall time as it is asked.
  Instant AskedDeadline() const final {
    const std::chrono::system_clock::time_point deadline = context_.deadline();
    if (deadline == std::chrono::system_clock::time_point::max()) return Instant::InfiniteFuture();
    return calls_.clock.FromWall(absl::FromChrono(deadline));
  }
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_GRPC_INFER_CALL_H_
