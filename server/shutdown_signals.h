// Signals of a server's process, taken by a thread of their own.
//
//   SIGTERM, SIGINT   ask it to stop: while nothing serves yet it leaves at once, with 0; else it drains; a second one
//                     leaves at once, with kLeftUndrained; so does the first, where a step of the drain takes longer
//                     than LeaveWithin lets it
//   SIGHUP, SIGUSR1, SIGUSR2   are logged, and change nothing
//   SIGPIPE, SIGXFSZ  are ignored: writing then fails with an error, as to a full disk
#ifndef SWIZZLE_SERVER_SHUTDOWN_SIGNALS_H_
#define SWIZZLE_SERVER_SHUTDOWN_SIGNALS_H_

#include <signal.h>

#include <atomic>
#include <future>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"

namespace swizzle {

// What the process of a server exits with.
enum ExitCode : int { kDrained = 0, kCannotStart = 1, kWrongCommandLine = 2, kLeftUndrained = 3 };

// Ends the process with `code`, its log written. Without destructors: they wait for threads, gRPC's among them, and
// some of those may never have been started. Builds with sanitizers return instead, so that these see the destructors,
// and leaks.
int LeaveProcess(int code);

// One object a process, which is never destroyed: its thread outlives main.
class ShutdownSignals {
 public:
  // Blocks the signals for this thread and those that it starts. Call it from main, before any other thread runs.
  ShutdownSignals();

  // From now on the first signal is for Wait.
  void StartServing() { serving_ = true; }

  void Wait() { first_.get_future().wait(); }

  // Whether Wait has come to an end, or would at once.
  bool asked() const { return asked_; }

  // For what a drain waits for: the process leaves with `code` unless this is called again within `most`. From when
  // Wait has returned.
  void LeaveWithin(absl::Duration most, ExitCode code);

 private:
  void Take();
  bool AwaitRequest();
  void LeaveIfLate();

  sigset_t signals_;
  std::atomic<bool> serving_ = false, asked_ = false;
  std::promise<void> first_;
  Mutex mutex_;
  Instant leave_ ABSL_GUARDED_BY(mutex_) = Instant::InfiniteFuture();
  ExitCode leave_with_ ABSL_GUARDED_BY(mutex_) = kLeftUndrained;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SHUTDOWN_SIGNALS_H_
