// The barrier between the server and what it runs for a model or a request.
//
// Nothing of ours throws. The standard library does, where memory or threads run out, and libraries may. Whatever a
// contained call throws becomes its Status, so that it ends one model's load, one batch or one request, and not the
// process. The status names no cause that a client has no business with; the log has it.
#ifndef SWIZZLE_SERVER_TELEMETRY_CONTAINMENT_H_
#define SWIZZLE_SERVER_TELEMETRY_CONTAINMENT_H_

#include <utility>

#include "kernels/base/status.h"

namespace swizzle {

// The exception that is being handled as a status: RESOURCE_EXHAUSTED where memory or threads ran out, else INTERNAL.
// `what` was to be done: "run the batch". REQUIRES: called in a catch block. Throws nothing, even with no memory left.
Status CaughtStatus(const char* what) noexcept;

// What `call`, which returns a Status or StatusOr, returns or throws. Thread-safe as far as `call` is.
template <typename Call>
auto Contain(const char* what, Call&& call) -> decltype(call()) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    return CaughtStatus(what);
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_CONTAINMENT_H_
