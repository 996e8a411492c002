#include "model_loader/regions/region_tuner.h"

#include <algorithm>
#include <utility>

namespace swizzle::regions {

StatusOr<Tuned> RegionTuner::Tune(MeasureGate& gate, absl::Duration budget) {
  const absl::Duration end = gate.Spent() + budget;
  Tuned all;
  int64_t left = std::ranges::count(tunables_, false, &Tunable::complete);
  for (Tunable& tunable : tunables_) {
    if (tunable.complete) continue;
    const absl::Duration share = std::max(end - gate.Spent(), absl::ZeroDuration()) / left--;
    SWIZZLE_ASSIGN_OR_RETURN(const Tuned tuned, tunable.tuner->Tune(gate, share));
    tunable.complete = tuned.complete();
    all.timed_now += tuned.timed_now;
    all.suspect += tuned.suspect;
    all.untimed += tuned.untimed;
    if (tuned.better == nullptr) continue;
    tunable.region->Replace(tuned.better, tuned.blueprint);
    ++all.replaced;
    all.gain += tuned.gain / static_cast<double>(tunables_.size());
  }
  return all;
}

}  // namespace swizzle::regions
