// `backend: "identity"`: a model without weights whose outputs are its inputs, byte for byte. It measures the server's
// own overhead, and, with a delay, lets tests fill queues.
#ifndef SWIZZLE_SERVER_MODEL_IDENTITY_MODEL_H_
#define SWIZZLE_SERVER_MODEL_IDENTITY_MODEL_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "server/model/model.h"

namespace swizzle {

// Every batch takes `execute_delay` (parameter execute_delay_ms), by its session's clock. A decoupled model's answers
// each of its requests `repeats` times (repeat_count), with the delay before each.
// INVALID_ARGUMENT, naming the model and the tensor, unless output i has the dtype and dims of input i, for every i.
StatusOr<std::shared_ptr<Model>> NewIdentityModel(ModelSpec spec, absl::Duration execute_delay, int64_t repeats = 1);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_IDENTITY_MODEL_H_
