// Tunes the plans of a program's regions, one after the other, and puts better ones in their places itself.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_REGION_TUNER_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_REGION_TUNER_H_

#include <memory>
#include <vector>

#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/plan_tuner.h"
#include "model_loader/regions/planned_region.h"

namespace swizzle::regions {

// Used by one thread at a time.
class RegionTuner final : public PlanTuner {
 public:
  // A region, and the tuner of its plan.
  struct Tunable {
    std::shared_ptr<PlannedRegion> region;
    std::unique_ptr<PlanTuner> tuner;
    bool complete = false;
  };

  // `cache`, which the tuners may share, goes with them; it may be null.
  RegionTuner(std::vector<Tunable> tunables, std::unique_ptr<TuningCache> cache)
      : cache_(std::move(cache)), tunables_(std::move(tunables)) {}

  // What is left of the budget is shared among the regions of which not all is known, by their layers. The result has
  // no plan, but says how many were replaced, and what was gained on average, over all of those that can be tuned.
  StatusOr<Tuned> Tune(MeasureGate& gate, absl::Duration budget) override;

 private:
  std::unique_ptr<TuningCache> cache_;  // first: tuners use it
  std::vector<Tunable> tunables_;
};

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_REGION_TUNER_H_
