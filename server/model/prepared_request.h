// What the model itself says of a request before it is queued. A free function, thread-safe.
#ifndef SWIZZLE_SERVER_MODEL_PREPARED_REQUEST_H_
#define SWIZZLE_SERVER_MODEL_PREPARED_REQUEST_H_

#include "kernels/base/status.h"
#include "server/model/model.h"
#include "server/model/request.h"

namespace swizzle {

// Encodes the request's inputs, fills in its tokens and class, and stages the inputs, as Model has them.
// INVALID_ARGUMENT where the model cannot run it. REQUIRES: inputs are as the specification says.
Status PrepareRequest(const Model& model, Request& request);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_PREPARED_REQUEST_H_
