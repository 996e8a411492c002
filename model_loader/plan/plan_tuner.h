// A plan that is there at once, and a better one later: what the first is chosen by is estimated, or was measured
// before; a tuner measures when there is time, and makes another plan of the same network.
//
// Memory: until it is gone a tuner holds the network's weights in their formats. While it tunes there are, besides: the
// forms of one layer's weight that its candidates read; the forms that the new plan doesn't share with the old one; and
// two arenas, in which the plans are compared.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_PLAN_TUNER_H_
#define SWIZZLE_MODEL_LOADER_PLAN_PLAN_TUNER_H_

#include <memory>

#include "absl/time/time.h"
#include "kernels/backend/backend.h"
#include "kernels/measure/measure_gate.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/plan_options.h"
#include "model_loader/plan/run/plan.h"

namespace swizzle {

class Blueprint;
struct PlanMaterials;

struct Tuned {
  std::shared_ptr<const Plan> better = nullptr;          // null: the plan that runs is as good, as far as could be told
  std::shared_ptr<const Blueprint> blueprint = nullptr;  // that `better` leaves, if it does
  int replaced = 0;                                      // plans that the tuner has put in the places of others itself
  double gain = 0.0;  // of the time of the plan before, in the mean of batch sizes; of `better`, or of those replaced
  int timed_now = 0;  // measurements made
  int suspect = 0;    // disturbed ones, that should be made again
  int untimed = 0;    // see PlanReport
  bool complete() const { return suspect == 0 && untimed == 0; }
};

// Used by one thread at a time.
class PlanTuner {
 public:
  virtual ~PlanTuner() = default;
  // Measures what is not known, as `gate` lets it, for `budget` at most (PlanOptions::tuning_budget). A plan is better
  // if it was faster than the one that runs by more than the noise (plan_race.h), or, where kernels skip zeros of their
  // inputs, which a race has not as requests have, if it differs and all was measured; it counts as the one that runs
  // from then on. Where none is, but kernels have since chosen other algorithms of a library
  // (algorithm_choices.h), the one that runs is returned, to be recorded again with them. Called again it
  // measures what was suspect, or had no time. CANCELLED if the gate says so.
  virtual StatusOr<Tuned> Tune(MeasureGate& gate, absl::Duration budget) = 0;
};

struct TunablePlan {
  std::shared_ptr<const Plan> plan;
  std::shared_ptr<const Blueprint> blueprint;  // for plans that share its weights; null: it leaves none
  std::unique_ptr<PlanTuner> tuner;            // null: all was known
};

// Measures nothing now; of the options, the tuning budget and the gate are the tuner's. `backend` and the tuning cache
// outlive both. Errors are MakePlan's.
StatusOr<TunablePlan> MakeTunablePlan(Network network, Backend& backend, const PlanOptions& options);
// The same, of these materials.
StatusOr<TunablePlan> MakeTunablePlan(PlanMaterials materials, Backend& backend, const PlanOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_PLAN_TUNER_H_
