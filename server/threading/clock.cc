#include "server/threading/clock.h"

namespace swizzle {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  void WaitUntil(Mutex& mutex, CondVar& changed, absl::Time deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    changed.WaitUntil(mutex, deadline);
  }
};

}  // namespace

Clock& Clock::Real() {
  static RealClock clock;
  return clock;
}

}  // namespace swizzle
