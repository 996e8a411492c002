// A clock that stands still until the test moves it. Thread-safe.
#ifndef SWIZZLE_TESTS_SUPPORT_FAKE_CLOCK_H_
#define SWIZZLE_TESTS_SUPPORT_FAKE_CLOCK_H_

#include <algorithm>
#include <vector>

#include "server/threading/clock.h"

namespace swizzle {

class FakeClock final : public Clock {
 public:
  Instant Now() override {
    MutexLock lock(mutex_);
    return now_;
  }

  absl::Time WallNow() override {
    MutexLock lock(mutex_);
    return wall_;
  }

  void WaitUntil(Mutex& mutex, CondVar& changed, Instant deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const Waiter self{&mutex, &changed, deadline};
    {
      MutexLock lock(mutex_);
      if (deadline <= now_) return;
      waiters_.push_back(self);
      arrived_.SignalAll();
    }
    changed.Wait(mutex);
    MutexLock lock(mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), self));
  }

  // Wakes the waiters whose deadline comes. What they wait on must outlive the call.
  void Advance(absl::Duration by) {
    std::vector<Waiter> waiters;
    Instant now;
    {
      MutexLock lock(mutex_);
      now = now_ = now_ + by;
      wall_ += by;
      waiters = waiters_;
    }
    for (const Waiter& waiter : waiters) {
      if (waiter.deadline > now) continue;
      MutexLock lock(*waiter.mutex);  // a waiter that has looked at the old time is now in Wait
      waiter.changed->SignalAll();
    }
  }

  // Somebody sets the wall clock.
  void JumpWall(absl::Duration by) {
    MutexLock lock(mutex_);
    wall_ += by;
  }

  // Returns once `count` threads are in WaitUntil.
  void AwaitWaiters(size_t count) {
    MutexLock lock(mutex_);
    while (waiters_.size() < count) arrived_.Wait(mutex_);
  }

 private:
  struct Waiter {
    Mutex* mutex;
    CondVar* changed;
    Instant deadline;
    bool operator==(const Waiter&) const = default;
  };
  Mutex mutex_;
  CondVar arrived_;  // waiters_ has grown
  Instant now_ ABSL_GUARDED_BY(mutex_) = Instant() + absl::Seconds(1'000'000);
  absl::Time wall_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'700'000'000);
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SUPPORT_FAKE_CLOCK_H_
