// Times candidate kernels on this machine, on the layer's real weights.
#ifndef SWIZZLE_KERNELS_MEASURE_MEASURE_KERNELS_H_
#define SWIZZLE_KERNELS_MEASURE_MEASURE_KERNELS_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "kernels/backend/backend.h"
#include "kernels/measure/machine_watch.h"
#include "kernels/measure/measure_gate.h"

namespace swizzle {

struct MeasureOptions {
  // Upper bound for all runs of one kernel on one problem, beyond the first two runs, and those in which it chooses a
  // library's algorithm: of several, on average.
  absl::Duration budget = absl::Milliseconds(4);
  int min_runs = 3;
  int max_runs = 25;  // three times as many where runs are disturbed
  MeasureGate* gate = &MeasureGate::Open();
  MachineWatch* watch = nullptr;  // of the stream's threads; null: runs are disturbed by what the gate tells alone
};

struct MeasuredTime {
  absl::Duration time = absl::InfiniteDuration();
  Disturbances suspect;  // why it isn't to be trusted; empty: it is
};

// One of several kernels for one problem. `weight` is what the kernel's prepare made, or null.
struct Contender {
  const Kernel* kernel;
  const PackedWeight* weight;
};

// The least time of a run of each contender on `problem` with pseudo-random inputs (fixed seed), after one warm-up. The
// least, because what a busy machine adds is never negative: medians of 20 us kernels were seen to measure the
// neighbours.
//
// Runs that were disturbed (machine_watch.h) don't count, and are repeated within the budget. What is to be trusted was
// seen twice: two undisturbed runs whose times agree, or one where nothing disturbed any. Where one of several has
// none, all are judged by the processor time of their work instead (loop_clock.h), of which two have to agree. Anything
// else is suspect, and then the least of all runs; not so a kernel that is far behind in any case.
//
// All take turns, a few runs each, so that a slow spell of the machine hits all alike: of contenders that were measured
// one after the other the winner was seen to be who came at a good time. One that is far behind after two
// turns gets no more, and leaves its time to the others. One that cannot run here (with a GPU's shared memory, say) is
// out from the start, and its time infinite; if none can, the first one's error. CANCELLED if the gate says so.
// Thread-compatible: `stream` is used throughout.
StatusOr<std::vector<MeasuredTime>> MeasureKernels(Backend& backend, Stream& stream,
                                                   std::span<const Contender> contenders, const Problem& problem,
                                                   const MeasureOptions& options);

// The same of one kernel alone.
StatusOr<MeasuredTime> MeasureKernel(Backend& backend, Stream& stream, const Kernel& kernel, const Problem& problem,
                                     const PackedWeight* weight, const MeasureOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_MEASURE_MEASURE_KERNELS_H_
