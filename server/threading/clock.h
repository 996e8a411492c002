// Time as a dependency, so that tests of queues and deadlines need no sleeping.
//
// Every latency and every deadline of the server is a difference of Instants, which a jump of the wall clock doesn't
// move. The wall clock is only for what people and other machines read: stamps, and deadlines that come from outside.
#ifndef SWIZZLE_SERVER_THREADING_CLOCK_H_
#define SWIZZLE_SERVER_THREADING_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/mutex.h"

namespace swizzle {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() = 0;
  virtual absl::Time WallNow() = 0;
  // Waits on `changed` (the caller holds `mutex`) until it is signalled or `deadline` has come; may wake early.
  virtual void WaitUntil(Mutex& mutex, CondVar& changed, Instant deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) = 0;

  // When `wall` will be, if the wall clock isn't set meanwhile.
  Instant FromWall(absl::Time wall) { return Now() + (wall - WallNow()); }

  static Clock& Real();
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_THREADING_CLOCK_H_
