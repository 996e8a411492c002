// A pool of threads that splits one piece of work at a time; the caller takes part. Wraps a pthreadpool.
//
// Each thread begins with neighbouring tasks of its own, the same part of every loop of as many tasks, and when it has
// done them takes the last ones of others: cores differ in speed by up to two where a neighbour shares them.
//
// Tasks compute with numbers below 1.2e-38 (the normal ones) as zeros: Intel's processors take 150 cycles for each
// instruction that meets another, so that a request of tiny numbers took ten times as long.
//
// Single-owner: Run and Rest must not overlap. Between two Runs the workers spin for the next one, which takes a
// microsecond instead of a wake-up's fifty; Rest sends them to sleep.
#ifndef SWIZZLE_KERNELS_CPU_THREAD_POOL_H_
#define SWIZZLE_KERNELS_CPU_THREAD_POOL_H_

#include <cstdint>
#include <memory>
#include <optional>

struct pthreadpool;

namespace swizzle::cpu {

class ThreadPool {
 public:
  // slot: of the thread that runs the task, below threads(); the caller's is 0. No two calls with one slot overlap.
  using Task = void (*)(void* context, int64_t slot, int64_t index);

  // threads: the caller included, at least 1. One thread makes no pool and no worker.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  int threads() const { return threads_; }
  // The next Run binds each thread, that of its caller among them, to a processor of its own: of the process's affinity
  // mask, round and round, those from the `first` on. Runs are then all that one thread's.
  void Pin(int first);
  // Calls task(context, slot, i) once for each i in [0, tasks) and returns when all are done.
  void Run(int64_t tasks, Task task, void* context);
  // Into how many tasks a loop is best cut, so that threads that are ahead can take some from those behind.
  int64_t BestTasks() const;
  // Lets the workers sleep until the next Run. Cheap if they sleep already.
  void Rest();

 private:
  struct Destroy {
    void operator()(pthreadpool* pool) const;
  };

  void PinNow();

  const int threads_;
  const std::unique_ptr<pthreadpool, Destroy> pool_;  // null if threads_ == 1
  std::optional<int> pin_from_;  // in the affinity mask; until the next Run
  bool spinning_ = false;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_THREAD_POOL_H_
