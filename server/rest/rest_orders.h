// POST .../load and .../unload at the address for operators, through the same ControlService as gRPC's. Functions only.
#ifndef SWIZZLE_SERVER_REST_REST_ORDERS_H_
#define SWIZZLE_SERVER_REST_REST_ORDERS_H_

#include <memory>
#include <string>

#include "server/http/http_call.h"
#include "server/rpc/control_service.h"

namespace swizzle {

// Answers the call once the order is carried out. Large bodies are read on threads of `calls`.
void StartRestOrder(ControlService& control, InferCalls& calls, std::shared_ptr<HttpCall> call, bool load,
                    std::string model);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_REST_ORDERS_H_
