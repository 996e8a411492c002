#include "server/model/prepared_request.h"

#include <numeric>
#include <utility>
#include <vector>

namespace swizzle {

Status PrepareRequest(const Model& model, Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(EncodedInputs encoded, model.Encode(request.inputs, request.text_options));
  if (encoded.owner != nullptr) request.owner = std::move(encoded.owner);
  request.text_tokens = encoded.text_tokens;
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> tokens, model.CheckRequest(request.inputs));
  request.tokens = std::accumulate(tokens.begin(), tokens.end(), int64_t{0});
  if (tokens.size() > 1) request.row_tokens = std::move(tokens);
  request.batch_class = model.BatchClass(request.inputs);
  request.staged = model.Stage(request.inputs);
  return absl::OkStatus();
}

}  // namespace swizzle
