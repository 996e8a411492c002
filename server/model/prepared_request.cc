#include "server/model/prepared_request.h"

#include <utility>

namespace swizzle {

Status PrepareRequest(const Model& model, Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(EncodedInputs encoded, model.Encode(request.inputs, request.text_options));
  if (encoded.owner != nullptr) request.owner = std::move(encoded.owner);
  request.text_tokens = encoded.text_tokens;
  SWIZZLE_ASSIGN_OR_RETURN(request.tokens, model.CheckRequest(request.inputs));
  if (request.rows > 1 && request.tokens > 0) request.row_tokens = model.RowTokens(request.inputs);
  request.batch_class = model.BatchClass(request.inputs);
  request.staged = model.Stage(request.inputs);
  return absl::OkStatus();
}

}  // namespace swizzle
