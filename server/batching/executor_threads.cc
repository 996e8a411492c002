#include "server/batching/executor_threads.h"

#include <algorithm>
#include <utility>

#include "kernels/base/check.h"
#include "kernels/cpu/runtime/start_threads.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

// After it another thread may start where none could: to try takes about a millisecond.
constexpr absl::Duration kPause = absl::Seconds(1);

}  // namespace

ExecutorThreads::ExecutorThreads(Clock& clock) : clock_(clock), alarm_thread_([this] { RingAlarms(); }) {
  const MutexLock lock(mutex_);
  try {
    threads_.emplace_back([this] { RunWorks(); });
  } catch (...) {
    {
      const MutexLock alarms(alarm_mutex_);
      alarms_stopping_ = true;
      alarms_changed_.SignalAll();
    }
    alarm_thread_.join();
    throw;
  }
}

ExecutorThreads::~ExecutorThreads() {
  {
    const MutexLock lock(alarm_mutex_);
    alarms_stopping_ = true;
    alarms_changed_.SignalAll();
  }
  alarm_thread_.join();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    SWIZZLE_CHECK(first_ == nullptr);
    stopping_ = true;
    threads.swap(threads_);
    added_.SignalAll();
  }
  for (std::thread& thread : threads) thread.join();
}

void ExecutorThreads::Expect(int works) {
  const MutexLock lock(mutex_);
  expected_ += works;
}

bool ExecutorThreads::Add(Work& work) {
  bool taken;
  {
    const MutexLock lock(mutex_);
    work.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &work;
    last_ = &work;
    ++waiting_;
    taken = waiting_ <= idle_ || Grow();
    NoteCrowd();
  }
  added_.Signal();  // outside the lock, so that the thread does not wake only to wait for it
  return taken;
}

// A thread for what waits; false if there is none to be had.
bool ExecutorThreads::Grow() {
  if (static_cast<int>(threads_.size()) >= expected_) return false;
  const Instant now = clock_.Now();
  if (now < next_try_) return false;
  try {
    if (cpu::CanStartThreads(1 + kSpareThreads)) {
      threads_.emplace_back([this] { RunWorks(); });
      refused_ = false;
      return true;
    }
  } catch (...) {  // another was faster, or there is no memory
  }
  next_try_ = now + kPause;
  if (!std::exchange(refused_, true)) {
    Log(LogLevel::kWarning, "executors take turns: no more threads can be started",
        {{"threads", threads_.size()}, {"limits", cpu::ThreadLimits()}});
  }
  return false;
}

void ExecutorThreads::NoteCrowd() { crowded_.store(refused_ && waiting_ > idle_, std::memory_order_relaxed); }

void ExecutorThreads::RunWorks() {
  mutex_.Lock();
  while (true) {
    while (first_ == nullptr && !stopping_) {
      ++idle_;
      clock_.WaitUntil(mutex_, added_, Instant::InfiniteFuture());
      --idle_;
    }
    if (first_ == nullptr) break;
    Work* const work = first_;
    first_ = work->next_;
    --waiting_;
    if (crowded_.load(std::memory_order_relaxed)) NoteCrowd();
    mutex_.Unlock();
    work->Run();  // after which it may be gone
    mutex_.Lock();
  }
  mutex_.Unlock();
}

void ExecutorThreads::Register(Alarm& alarm) {
  const MutexLock lock(alarm_mutex_);
  alarms_.push_back(&alarm);
}

void ExecutorThreads::Unregister(Alarm& alarm) {
  const MutexLock lock(alarm_mutex_);
  std::erase(alarms_, &alarm);
  while (ringing_ == &alarm) rung_.Wait(alarm_mutex_);
}

void ExecutorThreads::Set(Alarm& alarm, Instant at) {
  const MutexLock lock(alarm_mutex_);
  alarm.at_ = at;
  if (at < next_ring_) alarms_changed_.Signal();
}

void ExecutorThreads::RingAlarms() {
  alarm_mutex_.Lock();
  while (!alarms_stopping_) {
    const auto next = std::ranges::min_element(alarms_, {}, [](const Alarm* alarm) { return alarm->at_ - Instant(); });
    next_ring_ = next == alarms_.end() ? Instant::InfiniteFuture() : (*next)->at_;
    if (next_ring_ > clock_.Now()) {
      clock_.WaitUntil(alarm_mutex_, alarms_changed_, next_ring_);
      continue;
    }
    Alarm* const alarm = *next;
    alarm->at_ = Instant::InfiniteFuture();
    ringing_ = alarm;
    alarm_mutex_.Unlock();
    alarm->Ring();
    alarm_mutex_.Lock();
    ringing_ = nullptr;
    rung_.SignalAll();
  }
  alarm_mutex_.Unlock();
}

}  // namespace swizzle
