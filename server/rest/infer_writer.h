// The answer to an inference as clients of HTTP read it: JSON, and behind it the outputs that were asked for as bytes.
// Functions only.
#ifndef SWIZZLE_SERVER_REST_INFER_WRITER_H_
#define SWIZZLE_SERVER_REST_INFER_WRITER_H_

#include <cstdint>

#include "kernels/base/status.h"
#include "proto/grpc_service.pb.h"
#include "server/http/http_call.h"
#include "server/rest/infer_reader.h"

namespace swizzle {

// Takes large outputs out of `message`. INVALID_ARGUMENT where an output has a value that JSON has not,
// RESOURCE_EXHAUSTED where the JSON has more than `most` bytes; both say that it can be had as bytes.
StatusOr<HttpAnswer> WriteRestInfer(inference::ModelInferResponse& message, const OutputForms& forms, int64_t most);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_INFER_WRITER_H_
