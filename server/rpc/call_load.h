// What calls for inference take of the server, as metrics tell it. A free function, thread-safe.
#ifndef SWIZZLE_SERVER_RPC_CALL_LOAD_H_
#define SWIZZLE_SERVER_RPC_CALL_LOAD_H_

#include "server/rpc/infer_call.h"
#include "server/telemetry/metrics.h"

namespace swizzle {

CallLoad LoadOf(const InferCalls& calls);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_CALL_LOAD_H_
