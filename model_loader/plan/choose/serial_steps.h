// Which steps of a plan are faster on one thread where a batch is small.
//
// A step of a few microseconds may end sooner on the caller's thread alone, which waits for no other and leaves what it
// writes in its own cache. Which ones do is measured inside the plan: alone, a serial step finds its inputs in that
// cache, where in a plan all threads have written them. Since steps change each other so, the plan is then timed as a
// whole with what was chosen, and without, and what does not win is left.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_SERIAL_STEPS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_SERIAL_STEPS_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "model_loader/plan/choose/trial_conditions.h"
#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle {

// Runs a small batch, the steps that it is told to on one thread, and says how long each step took.
using StepTimer = absl::FunctionRef<StatusOr<std::vector<absl::Duration>>(const std::vector<bool>& serial)>;

// Which of a plan's steps to run on one thread. Measured for about `budget`, in turns; none where three turns are more
// than that, or than twice that once they are under way. `cache` may be null; what it knows of `plan_hash` is not
// measured again, and it is told what is, unless that is suspect.
StatusOr<std::vector<bool>> ChooseSerialSteps(int steps, absl::Duration budget, TuningCache* cache, uint64_t plan_hash,
                                              StepTimer timer, TrialConditions& conditions);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_SERIAL_STEPS_H_
