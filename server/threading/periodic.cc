#include "server/threading/periodic.h"

#include <utility>

namespace swizzle {

Periodic::Periodic(absl::Duration interval, std::function<void()> call, Clock& clock)
    : interval_(interval), call_(std::move(call)), clock_(clock), thread_([this] { Run(); }) {}

Periodic::~Periodic() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    stopped_.SignalAll();
  }
  thread_.join();
}

void Periodic::Run() {
  while (true) {
    const Instant next = clock_.Now() + interval_;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && clock_.Now() < next) clock_.WaitUntil(mutex_, stopped_, next);
      if (stopping_) return;
    }
    try {
      call_();
    } catch (...) {  // no memory: the next call comes in time
    }
  }
}

}  // namespace swizzle
