// POST .../infer: one request, one answer, through the same InferCall as gRPC's. Functions only.
#ifndef SWIZZLE_SERVER_REST_REST_INFER_H_
#define SWIZZLE_SERVER_REST_REST_INFER_H_

#include <memory>
#include <string>

#include "server/http/http_call.h"
#include "server/rpc/infer_call.h"

namespace swizzle {

// Answers the call. Large and compressed bodies are read on threads of their own.
void StartRestInfer(InferCalls& calls, std::shared_ptr<HttpCall> call, std::string model, std::string version);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_INFER_H_
