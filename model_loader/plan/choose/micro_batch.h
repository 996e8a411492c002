// How much of a batch one run of a plan computes best.
//
// Layer by layer, a large batch's activations leave the caches before the next layer reads them; a few rows through all
// layers, then the next few, read weights again instead, which zeros have made small. Which is faster depends on the
// model, the caches and the threads that rows have to keep busy, so it is measured.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MICRO_BATCH_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MICRO_BATCH_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "model_loader/plan/choose/trial_conditions.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

// Since some fixed moment.
using ElapsedTime = absl::FunctionRef<absl::Duration()>;

// Rows that a run of `plan` should take at most, tokens where the network has sequences. A batch of 8 rows, at least
// one a thread, is timed in parts (or runs) of 1, 2, 4, ... rows, sequences being of a middling length. All sizes take
// turns and are compared within these, for about `budget`, and two turns at least. All that the plan takes if one run
// was fastest: on 16 threads each doubling still won at 16 rows. Likewise where there is nothing to choose, or a
// quarter of the budget does not pay for one batch, or twice the budget for two turns.
//
// `cache` may be null. What it knows of `plan_hash` is not measured again, and it is told what is, unless that is
// suspect. `now` is a clock that only goes forward.
StatusOr<int64_t> ChooseMicroBatch(const Plan& plan, absl::Duration budget, TuningCache* cache, uint64_t plan_hash,
                                   ElapsedTime now, TrialConditions& conditions);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MICRO_BATCH_H_
