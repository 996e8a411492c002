// An inference as clients of HTTP write it: JSON, perhaps with tensors as bytes behind it (the binary tensor data
// extension). It becomes the bytes of a ModelInferRequest, which is then checked as if it had come by gRPC.
//
// All tensors become raw contents, whatever they were, so that either kind may stand in one request. JSON is read by a
// walk that keeps no tree of it: what it takes is bounded by the text and by `most`, however deep or repetitive it is.
#ifndef SWIZZLE_SERVER_REST_INFER_READER_H_
#define SWIZZLE_SERVER_REST_INFER_READER_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "server/http/http_call.h"

namespace swizzle {

// How outputs are to be answered: as bytes, or in JSON.
struct OutputForms {
  bool binary = false;                  // of those that are not named below
  std::map<std::string, bool> of = {};  // by output

  bool IsBinary(const std::string& output) const {
    const auto found = of.find(output);
    return found == of.end() ? binary : found->second;
  }
};

struct RestInferRequest {
  grpc::ByteBuffer message;  // a ModelInferRequest
  OutputForms forms;
};

// `body`'s first `json_bytes` are JSON; what follows are tensors. RESOURCE_EXHAUSTED if the request's tensors have more
// than `most` bytes, else INVALID_ARGUMENT, which says what is wrong and where. REQUIRES: json_bytes <= body->size.
StatusOr<RestInferRequest> ReadRestInfer(const std::shared_ptr<const HttpBody>& body, size_t json_bytes,
                                         std::string_view model, std::string_view version, int64_t most);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_INFER_READER_H_
