#include "server/rpc/connections.h"

#include <dlfcn.h>
#include <grpcpp/alarm.h>

#include <future>
#include <memory>
#include <string>
#include <type_traits>

namespace swizzle {
namespace {

bool IsKnownVersion() {
  static const bool known = grpc::Version().starts_with("1.51.");
  return known;
}

// Calls a method without arguments of grpc_core::Server, which is what c_server() points to. `symbol`: its mangled
// name. What is called wants a thread that is gRPC's own, as an alarm goes off on.
template <typename Result>
Result CallCore(grpc::Server& server, const char* symbol) {
  void* const found = IsKnownVersion() ? dlsym(RTLD_DEFAULT, symbol) : nullptr;
  if (found == nullptr) return Result();
  const auto result = std::make_shared<std::promise<Result>>();
  grpc::Alarm alarm;
  alarm.Set(gpr_now(GPR_CLOCK_MONOTONIC), [result, found, core = server.c_server()](bool) {
    const auto call = reinterpret_cast<Result (*)(void*)>(found);
    if constexpr (std::is_void_v<Result>) {
      call(core);
      result->set_value();
    } else {
      result->set_value(call(core));
    }
  });
  return result->get_future().get();
}

}  // namespace

void SendGoaways(grpc::Server& server) { CallCore<void>(server, "_ZN9grpc_core6Server11SendGoawaysEv"); }

bool HasConnections(grpc::Server& server) {
  return CallCore<bool>(server, "_ZN9grpc_core6Server18HasOpenConnectionsEv");
}

}  // namespace swizzle
