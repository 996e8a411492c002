// On how many of its threads each step of a plan is fastest where a batch is small.
//
// A step of a few microseconds may end sooner on fewer threads, which wait for no others and leave what they write in
// fewer caches. Which ones do is measured inside the plan: alone, a step on one thread finds its inputs in that thread's
// cache, where in a plan all threads have written them. Since steps change each other so, the plan is then timed as a whole
// with what was chosen, and without, and what does not win is left.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_STEP_THREADS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_STEP_THREADS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "kernels/status.h"
#include "model_loader/plan/tuning_cache.h"

namespace swizzle {

// Runs a small batch, each step on as many threads as it is told, and says how long each took.
using TimeSteps = absl::FunctionRef<StatusOr<std::vector<absl::Duration>>(std::span<const int> threads)>;

// Threads for each of a plan's steps: all, or a half, a quarter, ... of `threads`. Measured for about `budget`, in turns;
// all where three turns are more than that. `cache` may be null; what it knows of `plan_hash` is not measured again, and it
// is told what is.
StatusOr<std::vector<int>> ChooseStepThreads(int steps, int threads, absl::Duration budget, TuningCache* cache,
                                             uint64_t plan_hash, TimeSteps time_steps);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_STEP_THREADS_H_
