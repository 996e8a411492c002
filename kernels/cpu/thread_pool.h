// A pool of threads that splits one piece of work at a time; the caller takes part. Wraps a pthreadpool.
//
// Single-owner: Run and Rest must not overlap. Between two Runs the workers spin for the next one, which takes a
// microsecond instead of a wake-up's fifty; Rest sends them to sleep.
#ifndef SWIZZLE_KERNELS_CPU_THREAD_POOL_H_
#define SWIZZLE_KERNELS_CPU_THREAD_POOL_H_

#include <cstddef>
#include <memory>

struct pthreadpool;

namespace swizzle::cpu {

class ThreadPool {
 public:
  using Task = void (*)(void* context, size_t index);

  // threads: the caller included, at least 1. One thread makes no pool and no worker.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  int threads() const { return threads_; }
  // Calls task(context, i) once for each i in [0, tasks), on any thread, and returns when all are done.
  void Run(size_t tasks, Task task, void* context);
  // Lets the workers sleep until the next Run. Cheap if they sleep already.
  void Rest();

 private:
  struct Destroy {
    void operator()(pthreadpool* pool) const;
  };

  const int threads_;
  const std::unique_ptr<pthreadpool, Destroy> pool_;  // null if threads_ == 1
  bool spinning_ = false;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_THREAD_POOL_H_
