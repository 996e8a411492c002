#include "model_loader/plan/plan_tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "model_loader/plan/choose/plan_race.h"
#include "model_loader/plan/choose/trial_conditions.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"

namespace swizzle {
namespace {

// How many times its budget a pass may take before the race with the running plan is given up.
constexpr double kPatience = 1.5;

// Whether plans run the same.
bool AreAlike(const PlanReport& a, const PlanReport& b) {
  if (a.micro_batch != b.micro_batch || a.small_batch != b.small_batch || a.buckets != b.buckets) return false;
  for (size_t i = 0; i < a.layers.size(); ++i) {
    const LayerReport &one = a.layers[i], &other = b.layers[i];
    if (one.kernels != other.kernels || one.blocking != other.blocking || one.serial != other.serial) return false;
  }
  return true;
}

// Choices that recordings made before them have not.
int64_t CountAlgorithms(Backend& backend) {
  const AlgorithmChoices* const choices = ChoicesOf(backend);
  return choices == nullptr ? 0 : choices->CountOthers();
}

// A race is run on inputs of zeros, which make other zeros inside than what the model is for: of kernels that skip
// these, only the times that they were chosen by say anything.
bool SkipsInputZeros(const PlanReport& report) {
  return std::ranges::any_of(report.layers, [](const LayerReport& layer) { return layer.SkipsInputZeros(); });
}

class NetworkTuner final : public PlanTuner {
 public:
  NetworkTuner(PlanMaterials materials, Backend& backend, PlanOptions options)
      : materials_(std::move(materials)), backend_(backend), options_(std::move(options)) {
    if (options_.tuning_cache != nullptr) return;
    own_cache_ = std::make_unique<TuningCache>("", backend);
    options_.tuning_cache = own_cache_.get();
  }

  StatusOr<std::shared_ptr<const Plan>> MakeFirst() {
    PlanOptions options = options_;
    options.tuning_budget = absl::ZeroDuration();
    SWIZZLE_ASSIGN_OR_RETURN(running_, MakePlan(materials_, backend_, options));
    return running_;
  }

  StatusOr<Tuned> Tune(MeasureGate& gate, absl::Duration budget) override {
    PlanOptions options = options_;
    options.gate = &gate;
    options.tuning_budget = budget;
    if (!HasHostMemory(backend_)) options.make_watch = nullptr;  // its thread sleeps while the device runs
    const PreparedWeights weights_before = *materials_.weights;
    const std::shared_ptr<const Blueprint> blueprint_before = materials_.blueprint;
    const absl::Duration give_up = gate.Spent() + budget * kPatience;
    const int64_t algorithms_before = CountAlgorithms(backend_);
    SWIZZLE_ASSIGN_OR_RETURN(auto plan, MakePlan(materials_, backend_, options));
    const PlanReport& report = plan->report();
    Tuned tuned{.better = nullptr, .timed_now = report.timed_now, .suspect = report.suspect, .untimed = report.untimed};
    StatusOr<std::vector<TimeRatio>> ratios = std::vector<TimeRatio>();
    const bool by_chance = SkipsInputZeros(report) || SkipsInputZeros(running_->report());
    const bool differs = !AreAlike(report, running_->report());
    if (differs && !by_chance) ratios = Race(*plan, options, give_up);
    const bool is_better =
        ratios.ok() && (by_chance ? differs && report.untimed == 0 : !ratios->empty() && IsFaster(*ratios));
    if (!is_better) {
      materials_.weights = weights_before;
      materials_.blueprint = blueprint_before;
      SWIZZLE_RETURN_IF_ERROR(ratios);
      if (CountAlgorithms(backend_) == algorithms_before) return tuned;
      tuned.better = running_;  // to be recorded again
      tuned.blueprint = materials_.blueprint;
      return tuned;
    }
    double log_gain = 0.0;
    for (const TimeRatio& ratio : *ratios) log_gain += std::log(ratio.median) / static_cast<double>(ratios->size());
    tuned.gain = 1.0 - std::exp(log_gain);
    tuned.better = running_ = std::move(plan);
    tuned.blueprint = materials_.blueprint;
    return tuned;
  }

  // Of the plan that runs.
  const std::shared_ptr<const Blueprint>& blueprint() const { return materials_.blueprint; }

 private:
  StatusOr<std::vector<TimeRatio>> Race(const Plan& plan, const PlanOptions& options, absl::Duration give_up) {
    TrialConditions conditions(options);
    conditions.BeforeThreads();
    SWIZZLE_ASSIGN_OR_RETURN(const auto challenger, plan.NewRunner({}));
    SWIZZLE_ASSIGN_OR_RETURN(const auto running, running_->NewRunner({}));
    conditions.AfterThreads();
    return RacePlans(plan, *challenger, *running_, *running, options.tuning_budget * TuningShare::kRace, give_up,
                     conditions);
  }

  PlanMaterials materials_;
  Backend& backend_;
  PlanOptions options_;
  std::unique_ptr<TuningCache> own_cache_;  // null: the options have one
  std::shared_ptr<const Plan> running_;
};

}  // namespace

StatusOr<TunablePlan> MakeTunablePlan(Network network, Backend& backend, const PlanOptions& options) {
  return MakeTunablePlan(PlanMaterials(std::move(network)), backend, options);
}

StatusOr<TunablePlan> MakeTunablePlan(PlanMaterials materials, Backend& backend, const PlanOptions& options) {
  materials.keep = true;
  auto tuner = std::make_unique<NetworkTuner>(std::move(materials), backend, options);
  TunablePlan tunable;
  SWIZZLE_ASSIGN_OR_RETURN(tunable.plan, tuner->MakeFirst());
  tunable.blueprint = tuner->blueprint();
  if (tunable.plan->report().untimed > 0) tunable.tuner = std::move(tuner);
  return tunable;
}

}  // namespace swizzle
