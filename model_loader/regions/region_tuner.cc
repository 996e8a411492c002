#include "model_loader/regions/region_tuner.h"

#include <algorithm>
#include <utility>

namespace swizzle::regions {

StatusOr<Tuned> RegionTuner::Tune(MeasureGate& gate, absl::Duration budget) {
  const absl::Duration end = gate.Spent() + budget;
  Tuned all;
  const auto layers_of = [](const Tunable& tunable) {
    return std::max<int64_t>(std::ssize(tunable.region->plan()->report().layers), 1);
  };
  int64_t left = 0;
  for (const Tunable& tunable : tunables_) left += tunable.complete ? 0 : layers_of(tunable);
  for (Tunable& tunable : tunables_) {
    if (tunable.complete) continue;
    const int64_t layers = layers_of(tunable);
    const double part = static_cast<double>(layers) / static_cast<double>(left);
    const absl::Duration share = std::max(end - gate.Spent(), absl::ZeroDuration()) * part;
    left -= layers;
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
