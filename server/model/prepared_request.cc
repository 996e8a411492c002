#include "server/model/prepared_request.h"

#include <utility>

namespace swizzle {

Status PrepareRequest(const Model& model, Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<const void> encoded, model.Encode(request.inputs));
  if (encoded != nullptr) request.owner = std::move(encoded);
  SWIZZLE_ASSIGN_OR_RETURN(request.tokens, model.CheckRequest(request.inputs));
  request.batch_class = model.BatchClass(request.inputs);
  request.staged = model.Stage(request.inputs);
  return absl::OkStatus();
}

}  // namespace swizzle
