// Signals of a server's process, taken by a thread of their own.
//
//   SIGTERM, SIGINT   ask it to stop: while nothing serves yet it leaves at once, with 0; else it drains; a second one
//                     leaves at once, with kLeftUndrained
//   SIGHUP, SIGUSR1, SIGUSR2   are logged, and change nothing
//   SIGPIPE, SIGXFSZ  are ignored: writing then fails with an error, as to a full disk
#ifndef SWIZZLE_SERVER_SHUTDOWN_SIGNALS_H_
#define SWIZZLE_SERVER_SHUTDOWN_SIGNALS_H_

#include <signal.h>

#include <atomic>
#include <future>

namespace swizzle {

// What the process of a server exits with.
enum ExitCode : int { kDrained = 0, kCannotStart = 1, kWrongCommandLine = 2, kLeftUndrained = 3 };

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

 private:
  void Take();
  void AwaitRequest();

  sigset_t signals_;
  std::atomic<bool> serving_ = false, asked_ = false;
  std::promise<void> first_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SHUTDOWN_SIGNALS_H_
