#include "server/rpc/connections.h"

#include <grpcpp/alarm.h>

#include <memory>

#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "server/libraries/versions.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// A method without arguments of grpc_core::Server, which is what c_server() points to; null if the version is another.
void* GoawayFunction() {
  static void* const found = UnshownGrpcFunction({"1.51.", "1.83."}, "_ZN9grpc_core6Server11SendGoawaysEv");
  return found;
}

// How long gRPC's threads may take to begin it: where the system gave it none, they never do.
constexpr absl::Duration kMostDelay = absl::Seconds(1);

// Shared by who waits and who says it, since either may be the last.
struct Farewell {
  Mutex mutex;
  CondVar changed;
  bool said ABSL_GUARDED_BY(mutex) = false;
  bool given_up ABSL_GUARDED_BY(mutex) = false;  // the server may be gone
};

}  // namespace

bool CanSayGoaway() { return GoawayFunction() != nullptr; }

// The function wants a thread that is gRPC's own, as an alarm goes off on.
bool SendGoaways(grpc::Server& server) {
  void* const found = GoawayFunction();
  if (found == nullptr) return false;
  const auto farewell = std::make_shared<Farewell>();
  grpc::Alarm alarm;
  alarm.Set(gpr_now(GPR_CLOCK_MONOTONIC), [farewell, found, core = server.c_server()](bool) {
    const MutexLock lock(farewell->mutex);
    if (farewell->given_up) return;
    reinterpret_cast<void (*)(void*)>(found)(core);
    farewell->said = true;
    farewell->changed.SignalAll();
  });
  const Instant end = Clock::Real().Now() + kMostDelay;
  const MutexLock lock(farewell->mutex);
  while (!farewell->said && Clock::Real().Now() < end) farewell->changed.WaitUntil(farewell->mutex, end);
  farewell->given_up = !farewell->said;
  return farewell->said;
}

}  // namespace swizzle
