#include "server/shutdown_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "absl/time/time.h"
#include "server/repository/brought_files.h"
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

void ShutdownSignals::LeaveWithin(absl::Duration most, ExitCode code) {
  const MutexLock lock(mutex_);
  leave_ = Clock::Real().Now() + most;
  leave_with_ = code;
}

void ShutdownSignals::LeaveIfLate() {
  ExitCode code;
  {
    const MutexLock lock(mutex_);
    if (Clock::Real().Now() < leave_) return;
    code = leave_with_;
  }
  if (code == kDrained) {
    Log(LogLevel::kWarning, "stopped; connections did not end in time");
  } else {
    Log(LogLevel::kError, "requests did not end in time; leaving without them");
  }
  _exit(code);
}

void ShutdownSignals::Take() {
  while (!AwaitRequest()) {
  }
  if (!serving_) _exit(kDrained);
  asked_ = true;
  first_.set_value();
  const Instant first = Clock::Real().Now();
  while (!AwaitRequest() || Clock::Real().Now() < first + kSameRequest) LeaveIfLate();
  Log(LogLevel::kWarning, "second signal; leaving without a drain");
  _exit(kLeftUndrained);
}

// Whether somebody asks it to stop; while it drains, it looks at the time now and then.
bool ShutdownSignals::AwaitRequest() {
  static constexpr timespec kLook = {.tv_sec = 0, .tv_nsec = 200'000'000};
  const int taken = asked_ ? sigtimedwait(&signals_, nullptr, &kLook) : sigwaitinfo(&signals_, nullptr);
  if (taken < 0) return false;
  const bool stop = taken == SIGTERM || taken == SIGINT;
  Log(LogLevel::kInfo, stop ? "signal" : "signal ignored", {{"signal", sigabbrev_np(taken)}});
  return stop;
}

int LeaveProcess(int code) {
#if !defined(SWIZZLE_SANITIZED)
  RemoveBroughtFolders();
  FlushLog();
  _exit(code);
#endif
  return code;
}

}  // namespace swizzle
