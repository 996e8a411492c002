#include "model_loader/plan/choose/serial_steps.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "model_loader/plan/choose/median.h"

namespace swizzle {
namespace {

constexpr int kLeastTurns = 3;
constexpr int kMostTurns = 15;
constexpr double kStepGain = 0.05;   // of a step's time; what is less is noise
constexpr double kWholeGain = 0.02;  // of the plan's

using Durations = std::vector<absl::Duration>;

// In microseconds.
struct StepTimes {
  std::vector<double> parallel, serial;  // by step
  double chosen = 0.0;                   // of the plan with Faster()

  std::vector<bool> Faster() const {
    std::vector<bool> faster;
    for (size_t i = 0; i < serial.size(); ++i) faster.push_back(serial[i] < parallel[i] * (1.0 - kStepGain));
    return faster;
  }
  double AllParallel() const { return std::accumulate(parallel.begin(), parallel.end(), 0.0); }
};

absl::Duration Sum(const Durations& times) { return std::accumulate(times.begin(), times.end(), absl::ZeroDuration()); }

double RatioOf(absl::Duration time, absl::Duration base) {
  return absl::FDivDuration(time, std::max(base, absl::Nanoseconds(1)));
}

// Measures in turns until the budget is spent.
class Measurement {
 public:
  Measurement(int steps, StepTimer timer, TrialConditions& conditions)
      : none_(steps, false), all_(steps, true), timer_(timer), conditions_(conditions) {}

  // None if three turns would take more than the budget, or do, and much more.
  StatusOr<std::optional<StepTimes>> Run(absl::Duration budget) {
    SWIZZLE_ASSIGN_OR_RETURN(const Durations first, TimeSettled(all_));
    if (Sum(first) * (4 * kLeastTurns) > budget) return std::nullopt;
    StepTimes times;
    give_up_ = conditions_.Spent() + budget * TuningShare::kPatience;
    SWIZZLE_RETURN_IF_ERROR(CompareSteps(conditions_.Spent() + budget * 3 / 4, times));
    if (gave_up_) return std::nullopt;
    times.chosen = times.AllParallel();
    const std::vector<bool> faster = times.Faster();
    if (std::ranges::count(faster, true) > 0) {
      SWIZZLE_ASSIGN_OR_RETURN(const double ratio, CompareWhole(faster, conditions_.Spent() + budget / 4));
      if (gave_up_) return std::nullopt;
      times.chosen *= ratio;
    }
    return times;
  }

 private:
  // The second of two runs: the first leaves weights and activations in the caches of the threads that need them.
  StatusOr<Durations> TimeSettled(const std::vector<bool>& serial) {
    SWIZZLE_RETURN_IF_ERROR(conditions_.Begin());
    SWIZZLE_RETURN_IF_ERROR(timer_(serial));
    auto times = timer_(serial);
    conditions_.End();
    return times;
  }

  bool MayTakeTurn(int turn, absl::Duration end) {
    if (turn >= kLeastTurns) return turn < kMostTurns && conditions_.Spent() < end;
    gave_up_ = turn > 0 && conditions_.Spent() > give_up_;
    return !gave_up_;
  }

  // The least time of each step on all threads; on one, as many times that as in the median of all turns.
  Status CompareSteps(absl::Duration end, StepTimes& times) {
    std::vector<std::vector<double>> ratios(none_.size());
    times.parallel.assign(none_.size(), std::numeric_limits<double>::infinity());
    for (int turn = 0; MayTakeTurn(turn, end); ++turn) {
      SWIZZLE_ASSIGN_OR_RETURN(const Durations parallel, TimeSettled(none_));
      SWIZZLE_ASSIGN_OR_RETURN(const Durations serial, TimeSettled(all_));
      for (size_t i = 0; i < none_.size(); ++i) {
        ratios[i].push_back(RatioOf(serial[i], parallel[i]));
        times.parallel[i] = std::min(times.parallel[i], absl::ToDoubleMicroseconds(parallel[i]));
      }
    }
    times.serial = times.parallel;
    for (size_t i = 0; i < none_.size(); ++i) times.serial[i] *= Median(std::move(ratios[i]));
    return absl::OkStatus();
  }

  // What the plan takes with these steps serial of its time with none.
  StatusOr<double> CompareWhole(const std::vector<bool>& serial, absl::Duration end) {
    std::vector<double> ratios;
    for (int turn = 0; MayTakeTurn(turn, end); ++turn) {
      SWIZZLE_ASSIGN_OR_RETURN(const Durations parallel, TimeSettled(none_));
      SWIZZLE_ASSIGN_OR_RETURN(const Durations chosen, TimeSettled(serial));
      ratios.push_back(RatioOf(Sum(chosen), Sum(parallel)));
    }
    return Median(std::move(ratios));
  }

  const std::vector<bool> none_, all_;
  absl::Duration give_up_;  // before the least turns are done
  bool gave_up_ = false;
  const StepTimer timer_;
  TrialConditions& conditions_;
};

using Steps = TuningCache::Steps;

std::optional<StepTimes> Known(const TuningCache& cache, uint64_t plan_hash, int steps) {
  StepTimes times;
  for (int step = 0; step < steps; ++step) {
    const auto parallel = cache.FindStep(plan_hash, step, Steps::kParallel);
    const auto serial = cache.FindStep(plan_hash, step, Steps::kSerial);
    if (!parallel || !serial) return std::nullopt;
    times.parallel.push_back(*parallel);
    times.serial.push_back(*serial);
  }
  const auto chosen = cache.FindStep(plan_hash, TuningCache::kAllSteps, Steps::kChosen);
  if (!chosen) return std::nullopt;
  times.chosen = *chosen;
  return times;
}

void Remember(const StepTimes& times, uint64_t plan_hash, TuningCache& cache) {
  for (size_t i = 0; i < times.parallel.size(); ++i) {
    cache.AddStep(plan_hash, static_cast<int>(i), Steps::kParallel, times.parallel[i]);
    cache.AddStep(plan_hash, static_cast<int>(i), Steps::kSerial, times.serial[i]);
  }
  cache.AddStep(plan_hash, TuningCache::kAllSteps, Steps::kChosen, times.chosen);
}

}  // namespace

StatusOr<std::vector<bool>> ChooseSerialSteps(int steps, absl::Duration budget, TuningCache* cache, uint64_t plan_hash,
                                              StepTimer timer, TrialConditions& conditions) {
  const std::vector<bool> none(steps, false);
  std::optional<StepTimes> times;
  if (cache != nullptr) times = Known(*cache, plan_hash, steps);
  if (!times) {
    if (budget <= absl::ZeroDuration()) {
      conditions.AddUntimed();
      return none;
    }
    SWIZZLE_ASSIGN_OR_RETURN(times, Measurement(steps, timer, conditions).Run(budget));
    if (!times) return none;
    // Beside busy processes one thread seems faster with everything: it waits for no other.
    if (conditions.TakeSuspicion()) return none;
    if (cache != nullptr) Remember(*times, plan_hash, *cache);
  }
  return times->chosen < times->AllParallel() * (1.0 - kWholeGain) ? times->Faster() : none;
}

}  // namespace swizzle
