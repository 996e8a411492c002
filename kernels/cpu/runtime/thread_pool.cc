#include "kernels/cpu/runtime/thread_pool.h"

#include <immintrin.h>
#include <pthreadpool.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/measure/loop_clock.h"

#if defined(SWIZZLE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace swizzle::cpu {
namespace {

// ThreadSanitizer cannot see into the uninstrumented pthreadpool: these two tell it that what is before a Release on
// `sync` happens before what follows an Acquire of it.
void Release([[maybe_unused]] void* sync) {
#if defined(SWIZZLE_THREAD_SANITIZER)
  __tsan_release(sync);
#endif
}

void Acquire([[maybe_unused]] void* sync) {
#if defined(SWIZZLE_THREAD_SANITIZER)
  __tsan_acquire(sync);
#endif
}

// Of a pool's worker, from when the pool is made; 0 for every other thread, callers among them.
thread_local int64_t thread_slot = 0;

struct Job {
  ThreadPool::Task task;
  void* context;
};

void RunTask(void* opaque, size_t index) {
  Acquire(opaque);
  Job* job = static_cast<Job*>(opaque);
  job->task(job->context, thread_slot, static_cast<int64_t>(index));
  Release(opaque);
}

// One call for each thread of a pool, none of which ends before all have begun: so each thread makes one.
struct Meeting {
  absl::FunctionRef<void()> each;
  int threads;
  std::atomic<int> begun = 0;
};

void Attend(void* opaque, size_t) {
  Acquire(opaque);
  auto* meeting = static_cast<Meeting*>(opaque);
  meeting->each();
  ++meeting->begun;
  while (meeting->begun < meeting->threads) std::this_thread::yield();
  Release(opaque);
}

// Calls `each` once on each thread, the caller's too.
void RunOnEach(pthreadpool* pool, int threads, absl::FunctionRef<void()> each) {
  Meeting meeting{each, threads};
  Release(&meeting);
  pthreadpool_parallelize_1d(pool, Attend, &meeting, static_cast<size_t>(threads), PTHREADPOOL_FLAG_YIELD_WORKERS);
  Acquire(&meeting);
}

// A thread, by default the calling one. Where the system refuses, it goes on as it was.
void KeepThreadTo(std::span<const int> cpus, int thread = 0) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  sched_setaffinity(thread, sizeof(set), &set);
}

void DoNothing(void*, size_t) {}

// On the calling thread, as long as it lives; on a pool's threads its own flag does this.
class DenormalsAreZero {
 public:
  DenormalsAreZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushResults | kFlushOperands); }
  ~DenormalsAreZero() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kFlushResults = 0x8000, kFlushOperands = 0x0040;
  const unsigned before_;
};

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads), pool_(threads > 1 ? pthreadpool_create(threads) : nullptr) {
  SWIZZLE_CHECK(threads == 1 || pool_ != nullptr);
  if (pool_ == nullptr) return;
  workers_.resize(static_cast<size_t>(threads - 1));
  std::atomic<int> workers = 0;
  RunOnEach(pool_.get(), threads, [&, caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() == caller) return;
    thread_slot = ++workers;
    workers_[static_cast<size_t>(thread_slot - 1)] = gettid();
  });
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::Destroy::operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }

void ThreadPool::KeepTo(std::vector<int> cpus) { cpus_ = std::move(cpus); }

void ThreadPool::Pin(int first) {
  if (cpus_.empty()) {
    cpus_ = AffinityMask();
    first_cpu_ = first;
  }
  pins_ = true;
}

std::vector<int> ThreadPool::Cpus() const { return cpus_.empty() ? AffinityMask() : cpus_; }

void ThreadPool::PinThreads() {
  mask_of_caller_ = AffinityMaskOfThisThread();
  const auto pin = [this] { KeepThreadTo(std::array{CpuOf(thread_slot)}); };
  if (pool_ == nullptr || workers_pinned_) {
    pin();
  } else {
    RunOnEach(pool_.get(), threads_, pin);
  }
  workers_pinned_ = true;
}

// A caller that is there already is left alone: it seldom leaves during a run, and asking the system costs as much as a
// small step.
void ThreadPool::KeepCallerWithin() {
  if (std::ranges::find(cpus_, sched_getcpu()) != cpus_.end()) return;
  mask_of_caller_ = AffinityMaskOfThisThread();
  KeepThreadTo(cpus_);
}

void ThreadPool::KeepWorkersOffCaller() {
  const int cpu = sched_getcpu();
  if (cpu == kept_off_) return;
  kept_off_ = cpu;
  std::vector<int> others = Cpus();
  if (others.size() >= static_cast<size_t>(threads_)) {
    std::erase(others, cpu);
  } else if (cpus_.empty()) {
    return;
  }
  for (const int worker : workers_) KeepThreadTo(others, worker);
}

void ThreadPool::Run(int64_t tasks, Task task, void* context) {
  if (!cpus_.empty() && !spinning_ && mask_of_caller_.empty()) pins_ ? PinThreads() : KeepCallerWithin();
  LoopClock& clock = LoopClock::OfThisThread();
  if (pool_ == nullptr || tasks == 1 || clock.on()) {
    const absl::Duration start = clock.on() ? ThreadTime() : absl::ZeroDuration();
    const DenormalsAreZero guard;
    for (int64_t i = 0; i < tasks; ++i) task(context, 0, i);
    if (clock.on() && tasks > 0) clock.AddLoop(tasks, threads_, ThreadTime() - start);
    return;
  }
  if (!spinning_ && !pins_) KeepWorkersOffCaller();
  Job job{task, context};
  Release(&job);
  pthreadpool_parallelize_1d(pool_.get(), RunTask, &job, static_cast<size_t>(tasks),
                             PTHREADPOOL_FLAG_DISABLE_DENORMALS);
  Acquire(&job);
  spinning_ = true;
}

int64_t ThreadPool::BestTasks() const {
  constexpr int64_t kTasksPerThread = 4;
  return threads_ == 1 ? 1 : threads_ * kTasksPerThread;
}

void ThreadPool::Rest() {
  if (!mask_of_caller_.empty()) KeepThreadTo(std::exchange(mask_of_caller_, {}));
  if (!spinning_) return;
  pthreadpool_parallelize_1d(pool_.get(), DoNothing, nullptr, threads_, PTHREADPOOL_FLAG_YIELD_WORKERS);
  spinning_ = false;
}

}  // namespace swizzle::cpu
