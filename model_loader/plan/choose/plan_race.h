// Whether one plan of a network is faster than another, by more than the noise of the comparison.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_RACE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_RACE_H_

#include <span>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/status.h"
#include "model_loader/plan/choose/trial_conditions.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

// What a plan takes of another one's time, in the median of turns, and how far that may be off.
struct TimeRatio {
  double median = 1.0;
  double error = 0.0;  // standard error of the median
};

// REQUIRES: there are ratios.
TimeRatio RatioOf(std::vector<double> ratios);

// Whether these ratios, one a batch size, are of a plan that is faster: over all sizes by more than the noise, and at
// none slower by as much.
bool IsFaster(std::span<const TimeRatio> ratios);

// Times the two in turns, by the clock, or, where that tells little, by their work (TrialConditions), at a batch of one
// row and of eight (or the fixed batch), sequences being of a middling length, for about `budget` and a few turns at
// least. Nothing if these are not done by `give_up`, by the conditions' clock. `challenger`, `running`: runners of the
// plans.
StatusOr<std::vector<TimeRatio>> RacePlans(const Plan& challenger_plan, Runner& challenger, const Plan& running_plan,
                                           Runner& running, absl::Duration budget, absl::Duration give_up,
                                           TrialConditions& conditions);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_PLAN_RACE_H_
