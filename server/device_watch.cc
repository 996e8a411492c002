#include "server/device_watch.h"

#include <utility>

#include "absl/time/clock.h"

namespace swizzle {

DeviceWatch::DeviceWatch(Health health, Lost lost, absl::Duration interval)
    : health_(std::move(health)), lost_(std::move(lost)), interval_(interval), thread_([this] { Watch(); }) {}

DeviceWatch::~DeviceWatch() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stopped_.SignalAll();
  thread_.join();
}

void DeviceWatch::Watch() {
  for (;;) {
    if (const Status status = health_(); !status.ok()) return lost_(status);
    const absl::Time next = absl::Now() + interval_;
    MutexLock lock(mutex_);
    while (!stopping_ && absl::Now() < next) stopped_.WaitUntil(mutex_, next);
    if (stopping_) return;
  }
}

}  // namespace swizzle
