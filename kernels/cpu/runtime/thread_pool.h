// A pool of threads that splits one piece of work at a time; the caller takes part. Wraps a pthreadpool.
//
// Each thread begins with neighbouring tasks of its own, the same part of every loop of as many tasks, and when it has
// done them takes the last ones of others: cores differ in speed by up to two where a neighbour shares them.
//
// Tasks compute with denormal numbers (in FP32, those below 1.2e-38) as zeros: Intel's processors take some hundred
// cycles for an instruction that meets one, so that a request of tiny numbers took ten times as long.
//
// Single-owner: Run and Rest must not overlap. Between two Runs the workers spin for the next one, which takes a
// microsecond instead of a wake-up's fifty; Rest sends them to sleep.
//
// Where there is a processor for each thread, workers that sleep are kept off the caller's before they are woken. The
// system puts one there at times, while a processor falls idle: both then spin in turns of milliseconds.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_THREAD_POOL_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_THREAD_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

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
  // From the next Run on the threads keep to these processors: the workers for good, the thread that calls Run until
  // Rest, since what it does in between may start threads, which inherit its mask. REQUIRES: cpus is not empty.
  void KeepTo(std::vector<int> cpus);
  // From the next Run on each thread keeps to a processor of its own, in the same sense: of those that KeepTo was
  // given, or else of the process's affinity mask, round and round from the `first` on.
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

  // The processor that a thread with this slot is pinned to.
  int CpuOf(int64_t slot) const { return cpus_[static_cast<size_t>(first_cpu_ + slot) % cpus_.size()]; }
  // What the threads keep to, where they are not pinned.
  std::vector<int> Cpus() const;
  // REQUIRES: cpus_ is not empty.
  void PinThreads();
  void KeepCallerWithin();
  // REQUIRES: the workers sleep, or are about to.
  void KeepWorkersOffCaller();

  const int threads_;
  const std::unique_ptr<pthreadpool, Destroy> pool_;  // null if threads_ == 1
  std::vector<int> workers_;                          // the system's numbers of them
  int kept_off_ = -1;                                 // the processor that they were last kept off
  std::vector<int> cpus_;                             // that threads keep to; empty: those of the affinity mask
  std::vector<int> mask_of_caller_;                   // to be restored by Rest; empty: it was left alone
  bool pins_ = false;                                 // each thread has one of cpus_
  int first_cpu_ = 0;                                 // of cpus_, the caller's
  bool workers_pinned_ = false;
  bool spinning_ = false;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_THREAD_POOL_H_
