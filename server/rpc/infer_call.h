// One ModelInfer call, from its bytes to the bytes of its answer.
#ifndef SWIZZLE_SERVER_RPC_INFER_CALL_H_
#define SWIZZLE_SERVER_RPC_INFER_CALL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "kernels/base/status.h"
#include "server/model/inflight_bytes.h"
#include "server/repository/model_repository.h"
#include "server/rpc/connection_bytes.h"
#include "server/rpc/greedy_connections.h"
#include "server/rpc/response_watch.h"
#include "server/rpc/rpc_limits.h"
#include "server/rpc/wire_survey.h"
#include "server/threading/clock.h"
#include "server/threading/task_threads.h"

namespace swizzle {

// Calls that ended before they reached a model.
struct RefusedCalls {
  std::atomic<int64_t> malformed = 0;       // no message of the protocol
  std::atomic<int64_t> too_large = 0;       // beyond the limits of the server or of the model
  std::atomic<int64_t> inflight_bytes = 0;  // no room for them
};

// What all calls share. Outlives them.
struct InferCalls {
  using Repository = absl::AnyInvocable<StatusOr<const ModelRepository*>() const>;

  InferCalls(const RpcLimits& all_limits, Clock& of_server, Repository to_ask);

  const RpcLimits limits;
  Clock& clock;
  const Repository repository;
  const MessageLimits message_limits;
  std::atomic<bool> refusing = false;  // new calls, for a shutdown
  std::atomic<int64_t> under_way = 0;  // that have begun and that gRPC is not done with
  InflightBytes inflight;              // of all models
  ConnectionBytes connections;         // of those, by connection
  RefusedCalls refused;
  ResponseWatch responses;
  CancelledCalls cancelled;
  UnfinishedCalls unfinished;  // of connections, while there are many
  TaskThreads decoders;        // last: they use all of the above
};

// Answers one call; gRPC keeps `context`, `request` and `response` until it is over.
// A message is looked at before it is parsed (wire_survey.h). Large and compressed ones are read on threads of their
// own, so that gRPC's go on with others.
grpc::ServerUnaryReactor* StartInfer(InferCalls& calls, grpc::CallbackServerContext& context,
                                     const grpc::ByteBuffer& request, grpc::ByteBuffer& response);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_INFER_CALL_H_
