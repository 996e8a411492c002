#include "kernels/cpu/thread_pool.h"

#include <pthreadpool.h>

#include "kernels/status.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace swizzle::cpu {
namespace {

// ThreadSanitizer cannot see into the uninstrumented pthreadpool: these two tell it that what is before a Release on
// `sync` happens before what follows an Acquire of it.
void Release([[maybe_unused]] void* sync) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(sync);
#endif
}

void Acquire([[maybe_unused]] void* sync) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(sync);
#endif
}

struct Job {
  ThreadPool::Task task;
  void* context;
};

void RunTask(void* opaque, size_t index) {
  Acquire(opaque);
  Job* job = static_cast<Job*>(opaque);
  job->task(job->context, index);
  Release(opaque);
}

void DoNothing(void*, size_t) {}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(threads), pool_(threads > 1 ? pthreadpool_create(threads) : nullptr) {
  SWIZZLE_CHECK(threads == 1 || pool_ != nullptr);
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::Destroy::operator()(pthreadpool* pool) const { pthreadpool_destroy(pool); }

void ThreadPool::Run(size_t tasks, Task task, void* context) {
  if (pool_ == nullptr || tasks == 1) {
    for (size_t i = 0; i < tasks; ++i) task(context, i);
    return;
  }
  Job job{task, context};
  Release(&job);
  pthreadpool_parallelize_1d(pool_.get(), RunTask, &job, tasks, 0);
  Acquire(&job);
  spinning_ = true;
}

void ThreadPool::Rest() {
  if (!spinning_) return;
  pthreadpool_parallelize_1d(pool_.get(), DoNothing, nullptr, threads_, PTHREADPOOL_FLAG_YIELD_WORKERS);
  spinning_ = false;
}

}  // namespace swizzle::cpu
