// What runs the tasks of a kernel's parallel loops.
#ifndef SWIZZLE_KERNELS_CPU_LOOP_RUNNER_H_
#define SWIZZLE_KERNELS_CPU_LOOP_RUNNER_H_

#include <cstdint>

namespace swizzle::cpu {

// Single-owner: calls of Run must not overlap.
class LoopRunner {
 public:
  // slot: of the thread that runs the task. No two calls with one slot overlap.
  using Task = void (*)(void* context, int64_t slot, int64_t index);

  virtual ~LoopRunner() = default;
  // Calls task(context, slot, i) once for each i in [0, tasks) and returns when all are done.
  virtual void Run(int64_t tasks, Task task, void* context) = 0;
  // Into how many tasks a loop is best cut now, so that threads that are ahead can take some from those behind.
  virtual int64_t BestTasks() const = 0;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_LOOP_RUNNER_H_
