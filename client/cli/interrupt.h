// Ctrl-C, and its kin, for commands that run until somebody ends them.
#ifndef SWIZZLE_CLIENT_CLI_INTERRUPT_H_
#define SWIZZLE_CLIENT_CLI_INTERRUPT_H_

#include "absl/time/time.h"

namespace swizzle::client {

// While it lives, SIGINT, SIGTERM and SIGHUP are counted instead of ending the process. One at a time; its methods are
// for one thread.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  // Readable once a signal came that Take has not told of.
  int descriptor() const;
  // Whether one came since the last call.
  bool Take();
  // Sleeps for `most`, or until one comes; whether one did.
  bool Wait(absl::Duration most);
};

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_INTERRUPT_H_
