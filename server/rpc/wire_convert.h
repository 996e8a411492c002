// ModelInfer between the wire and the batcher: checks a request against a model, and writes a result.
//
// Everything a client can get wrong ends here, in INVALID_ARGUMENT with a message that names the model and the tensor,
// what was expected and what came; the batcher and the sessions trust what passes. Large inputs are not copied: raw
// contents, and typed contents that lie in memory as the tensor does, are views into the message.
#ifndef SWIZZLE_SERVER_RPC_WIRE_CONVERT_H_
#define SWIZZLE_SERVER_RPC_WIRE_CONVERT_H_

#include <span>
#include <vector>

#include "kernels/base/instant.h"
#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/model/model.h"
#include "server/model/request.h"
#include "server/rpc/requested_output.h"
#include "server/rpc/shared_memory.h"

namespace swizzle {

struct DecodedInfer {
  Request request;                          // deadline and late_at: of the parameter `timeout` alone
  std::vector<RequestedOutput> outputs;     // in the order of the response
  std::vector<SharedBytes> shared_outputs;  // of `outputs`; empty where none is to go to shared memory
  bool marks_final = false;  // the last answer is to say that it is, and of decoupled models there is an empty one
};

// `message` must outlive the request. `now` is when `timeout` starts to count. Inputs in shared memory are copied out
// of `shared`; null: there is none.
StatusOr<DecodedInfer> DecodeInfer(const inference::ModelInferRequest& message, const ModelSpec& spec, Instant now,
                                   const SharedRegions* shared = nullptr);

// Fills an empty `response` with `outputs`, taken out of `result`, in which classes stand where they are asked for.
void EncodeInfer(const inference::ModelInferRequest& message, const ModelSpec& spec,
                 std::span<const RequestedOutput> outputs, Result result, inference::ModelInferResponse& response);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_WIRE_CONVERT_H_
