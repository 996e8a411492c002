// Time as a dependency, so that tests of queues and deadlines need no sleeping.
#ifndef SWIZZLE_SERVER_THREADING_CLOCK_H_
#define SWIZZLE_SERVER_THREADING_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/threading/mutex.h"

namespace swizzle {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() = 0;
  // Waits on `changed` (the caller holds `mutex`) until it is signalled or `deadline` has come; may wake early.
  virtual void WaitUntil(Mutex& mutex, CondVar& changed, absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  static Clock& Real();
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_THREADING_CLOCK_H_
