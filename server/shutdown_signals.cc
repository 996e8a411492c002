#include "server/shutdown_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "absl/time/time.h"
#include "server/telemetry/logging.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// A signal that follows the first so closely is the same request: timeout(1), for one, sends it to a process and again
// to its group. Nobody types as fast.
constexpr absl::Duration kSameRequest = absl::Milliseconds(200);

}  // namespace

ShutdownSignals::ShutdownSignals() {
  for (const int ignored : {SIGPIPE, SIGXFSZ}) signal(ignored, SIG_IGN);
  sigemptyset(&signals_);
  for (const int taken : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals_, taken);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::thread([this] { Take(); }).detach();
}

void ShutdownSignals::Take() {
  AwaitRequest();
  if (!serving_) _exit(kDrained);
  asked_ = true;
  first_.set_value();
  const Instant first = Clock::Real().Now();
  do AwaitRequest();
  while (Clock::Real().Now() < first + kSameRequest);
  Log(LogLevel::kWarning, "second signal; leaving without a drain");
  _exit(kLeftUndrained);
}

// Until somebody asks it to stop.
void ShutdownSignals::AwaitRequest() {
  for (;;) {
    int taken = 0;
    if (sigwait(&signals_, &taken) != 0) continue;
    const bool stop = taken == SIGTERM || taken == SIGINT;
    Log(LogLevel::kInfo, stop ? "signal" : "signal ignored", {{"signal", sigabbrev_np(taken)}});
    if (stop) return;
  }
}

}  // namespace swizzle
