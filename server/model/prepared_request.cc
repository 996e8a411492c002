#include "server/model/prepared_request.h"

namespace swizzle {

Status PrepareRequest(const Model& model, Request& request) {
  SWIZZLE_ASSIGN_OR_RETURN(request.tokens, model.CheckRequest(request.inputs));
  request.batch_class = model.BatchClass(request.inputs);
  request.staged = model.Stage(request.inputs);
  return absl::OkStatus();
}

}  // namespace swizzle
