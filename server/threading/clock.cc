#include "server/threading/clock.h"

#include "absl/time/clock.h"

namespace swizzle {
namespace {

class RealClock final : public Clock {
 public:
  Instant Now() override { return MonotonicNow(); }
  absl::Time WallNow() override { return absl::Now(); }
  void WaitUntil(Mutex& mutex, CondVar& changed, Instant deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    changed.WaitUntil(mutex, deadline);
  }
};

}  // namespace

Clock& Clock::Real() {
  static RealClock clock;
  return clock;
}

}  // namespace swizzle
