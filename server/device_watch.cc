#include "server/device_watch.h"

#include <utility>

namespace swizzle {

DeviceWatch::DeviceWatch(Health health, Lost lost, Clock& clock, absl::Duration interval)
    : health_(std::move(health)), lost_(std::move(lost)), clock_(clock), interval_(interval), thread_([this] {
        Watch();
      }) {}

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
    const Instant next = clock_.Now() + interval_;
    MutexLock lock(mutex_);
    while (!stopping_ && clock_.Now() < next) clock_.WaitUntil(mutex_, stopped_, next);
    if (stopping_) return;
  }
}

}  // namespace swizzle
