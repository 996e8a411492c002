#include "server/rpc/connections.h"

#include <dlfcn.h>
#include <grpcpp/alarm.h>

#include <future>
#include <memory>

namespace swizzle {
namespace {

// A method without arguments of grpc_core::Server, which is what c_server() points to; null if the version is another.
void* GoawayFunction() {
  static void* const found =
      grpc::Version().starts_with("1.51.") ? dlsym(RTLD_DEFAULT, "_ZN9grpc_core6Server11SendGoawaysEv") : nullptr;
  return found;
}

}  // namespace

bool CanSayGoaway() { return GoawayFunction() != nullptr; }

// The function wants a thread that is gRPC's own, as an alarm goes off on.
bool SendGoaways(grpc::Server& server) {
  void* const found = GoawayFunction();
  if (found == nullptr) return false;
  const auto sent = std::make_shared<std::promise<void>>();
  grpc::Alarm alarm;
  alarm.Set(gpr_now(GPR_CLOCK_MONOTONIC), [sent, found, core = server.c_server()](bool) {
    reinterpret_cast<void (*)(void*)>(found)(core);
    sent->set_value();
  });
  sent->get_future().wait();
  return true;
}

}  // namespace swizzle
