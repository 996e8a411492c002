// A pool of threads that splits one piece of work at a time; the caller takes part. Wraps a pthreadpool.
//
// Each thread begins with neighbouring tasks of its own, the same part of every loop of as many tasks, and when it has
// done them takes the last ones of others: cores differ in speed by up to two where a neighbour shares them.
//
// Single-owner: Run and Rest must not overlap. Between two Runs the workers spin for the next one, which takes a
// microsecond instead of a wake-up's fifty; Rest sends them to sleep.
#ifndef SWIZZLE_KERNELS_CPU_THREAD_POOL_H_
#define SWIZZLE_KERNELS_CPU_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "kernels/cpu/loop_runner.h"

struct pthreadpool;

namespace swizzle::cpu {

class ThreadPool final : public LoopRunner {
 public:
  // threads: the caller included, at least 1. One thread makes no pool and no worker.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;

  int threads() const { return threads_; }
  // Slots are below threads(); the caller's is 0.
  void Run(int64_t tasks, Task task, void* context) override;
  int64_t BestTasks() const override;
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
