// What /status beside the metrics answers, for the page at / and whoever else reads JSON. Functions only.
#ifndef SWIZZLE_SERVER_RPC_STATUS_JSON_H_
#define SWIZZLE_SERVER_RPC_STATUS_JSON_H_

#include <span>
#include <string>

#include "kernels/backend/backend.h"
#include "kernels/base/status.h"
#include "server/repository/model_repository.h"

namespace swizzle {

// What metrics don't tell of the server, its devices, and each version of its models. `repository`: UNAVAILABLE while
// there is none yet. Thread-safe.
std::string StatusJson(const StatusOr<const ModelRepository*>& repository, const Backend& main,
                       std::span<Backend* const> gpus);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_STATUS_JSON_H_
