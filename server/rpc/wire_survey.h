// What parsing a ModelInferRequest will take, found by walking its bytes before protobuf sees them: of each byte on the
// wire protobuf can make a hundred bytes of memory, so that no limit on bytes alone holds. Functions only.
#ifndef SWIZZLE_SERVER_RPC_WIRE_SURVEY_H_
#define SWIZZLE_SERVER_RPC_WIRE_SURVEY_H_

#include <google/protobuf/io/zero_copy_stream.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "server/model/model.h"

namespace swizzle {

// What one message may take.
struct MessageLimits {
  int64_t bytes = 0;         // of the message itself, decompressed
  int64_t parsed_bytes = 0;  // of memory when parsed, its text and its tensors included
  std::string_view model;    // whose they are; empty: the server's
};

// Any model's. `most`: --max-message-bytes.
MessageLimits ServerLimits(int64_t most);

// What the model's inputs can be at its largest batch, in whichever form takes most, with room for names and
// parameters; the server's where a dimension is open, or they are less. `spec` outlives them.
MessageLimits ModelLimits(const ModelSpec& spec, const MessageLimits& server);

// What a walk found.
struct WireSurvey {
  int64_t bytes = 0;
  int64_t parsed_bytes = 0;  // an estimate from above
  bool too_large = false;    // a limit was broken
  bool malformed = false;
};

// The limits of the model that a message names; an error ends the walk.
using MessageLimitsOf = absl::FunctionRef<StatusOr<MessageLimits>(std::string_view model)>;

// Walks a ModelInferRequest to its end, or to the first limit that it breaks: RESOURCE_EXHAUSTED where it is the
// server's, INVALID_ARGUMENT where it is the model's. `limits_of` is called once: where the model's name first stands,
// or at the end where there is none. INVALID_ARGUMENT if the bytes are no such message.
Status SurveyInfer(google::protobuf::io::ZeroCopyInputStream& message, const MessageLimits& server,
                   MessageLimitsOf limits_of, WireSurvey& survey);

// The id of a ModelInferRequest that was not parsed, of which at most `most` bytes are read; empty where it has none,
// or none that could be sent back.
std::string RequestId(google::protobuf::io::ZeroCopyInputStream& message, int64_t most);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_WIRE_SURVEY_H_
