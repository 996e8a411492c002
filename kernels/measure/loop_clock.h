// How long work takes with a processor for each thread, by the processor time of one.
//
// Beside busy processes nothing else tells: threads have their turns at different times, and whoever is done waits for
// the others and spins, so that neither wall time nor processor time is the work's. While the clock is on, parallel
// loops are computed by the thread that starts them alone, and count as each thread's part of them.
#ifndef SWIZZLE_KERNELS_MEASURE_LOOP_CLOCK_H_
#define SWIZZLE_KERNELS_MEASURE_LOOP_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "absl/time/time.h"
#include "kernels/base/integers.h"

namespace swizzle {

// Processor time of the calling thread.
inline absl::Duration ThreadTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

// Of a thread that starts loops, and used by it alone.
class LoopClock {
 public:
  static LoopClock& OfThisThread() {
    static thread_local LoopClock clock;
    return clock;
  }

  void Start() {
    on_ = true;
    saved_ = absl::ZeroDuration();
    start_ = ThreadTime();
  }
  // What was done since Start takes.
  absl::Duration Stop() {
    on_ = false;
    return ThreadTime() - start_ - saved_;
  }

  bool on() const { return on_; }
  // While it is on: a loop of so many tasks, which this thread computed in that time, is one for so many threads.
  void AddLoop(int64_t tasks, int64_t threads, absl::Duration time) {
    saved_ += time - time * CeilDiv(tasks, threads) / tasks;
  }

 private:
  bool on_ = false;
  absl::Duration start_, saved_;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_MEASURE_LOOP_CLOCK_H_
