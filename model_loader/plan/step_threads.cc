#include "model_loader/plan/step_threads.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "model_loader/plan/trial_batch.h"

namespace swizzle {
namespace {

constexpr int kLeastTurns = 3;
constexpr int kMostTurns = 15;
constexpr double kStepGain = 0.05;   // of a step's time; what is less is noise
constexpr double kWholeGain = 0.01;  // of the plan's

using Durations = std::vector<absl::Duration>;

// In microseconds.
struct StepTimes {
  std::vector<std::vector<double>> steps;  // [count of threads][step], all threads first
  double chosen = 0.0;                     // of the plan, each step at its best count

  // The best index into `steps`, for each step.
  std::vector<size_t> Best() const {
    std::vector<size_t> best(steps.front().size(), 0);
    for (size_t step = 0; step < best.size(); ++step) {
      for (size_t c = 1; c < steps.size(); ++c) {
        const double limit = std::min(steps[best[step]][step], steps[0][step] * (1.0 - kStepGain));
        if (steps[c][step] < limit) best[step] = c;
      }
    }
    return best;
  }
  // Of the plan, all steps on all threads.
  double All() const { return std::accumulate(steps.front().begin(), steps.front().end(), 0.0); }
};

// All threads, a half, ... and one.
std::vector<int> Counts(int threads) {
  std::vector<int> counts;
  for (int count = threads; count > 1; count /= 2) counts.push_back(count);
  counts.push_back(1);
  return counts;
}

std::vector<int> ThreadsOf(const std::vector<size_t>& best, const std::vector<int>& counts) {
  std::vector<int> threads;
  for (size_t c : best) threads.push_back(counts[c]);
  return threads;
}

absl::Duration Sum(const Durations& times) { return std::accumulate(times.begin(), times.end(), absl::ZeroDuration()); }

double RatioOf(absl::Duration time, absl::Duration base) {
  return absl::FDivDuration(time, std::max(base, absl::Nanoseconds(1)));
}

// Measures in turns until the budget is spent.
class Measurement {
 public:
  Measurement(int steps, std::vector<int> counts, TimeSteps time_steps)
      : steps_(steps), counts_(std::move(counts)), time_steps_(time_steps) {}

  // None if three turns would take more than the budget.
  StatusOr<std::optional<StepTimes>> Run(absl::Duration budget) {
    // The first run on all threads sets things up.
    for (int i = 0; i < 2; ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(const Durations first, TimeAll(counts_.front()));
      // On half the threads it takes twice as long at worst, and so on.
      if (i == 1 && Sum(first) * (2 * counts_.front() * kLeastTurns) > budget) return std::nullopt;
    }
    StepTimes times;
    SWIZZLE_ASSIGN_OR_RETURN(times.steps, CompareCounts(absl::Now() + budget * 3 / 4));
    times.chosen = times.All();
    const std::vector<size_t> best = times.Best();
    if (std::ranges::count(best, 0u) < steps_) {
      SWIZZLE_ASSIGN_OR_RETURN(const double ratio, CompareWhole(ThreadsOf(best, counts_), absl::Now() + budget / 4));
      times.chosen *= ratio;
    }
    return times;
  }

 private:
  StatusOr<Durations> TimeAll(int threads) { return time_steps_(std::vector<int>(steps_, threads)); }

  // The least time of each step on all threads; on fewer, as many times that as in the middle one of all turns.
  StatusOr<std::vector<std::vector<double>>> CompareCounts(absl::Time end) {
    std::vector<double> least(steps_, std::numeric_limits<double>::infinity());
    std::vector turns(counts_.size(), std::vector<std::vector<double>>(steps_));
    for (int turn = 0; turn < kMostTurns && (turn < kLeastTurns || absl::Now() < end); ++turn) {
      Durations all;
      for (size_t c = 0; c < counts_.size(); ++c) {
        SWIZZLE_ASSIGN_OR_RETURN(const Durations times, TimeAll(counts_[c]));
        if (c == 0) all = times;
        for (int step = 0; step < steps_; ++step) turns[c][step].push_back(RatioOf(times[step], all[step]));
      }
      for (int step = 0; step < steps_; ++step) {
        least[step] = std::min(least[step], absl::ToDoubleMicroseconds(all[step]));
      }
    }
    std::vector microseconds(counts_.size(), least);
    for (size_t c = 0; c < counts_.size(); ++c) {
      for (int step = 0; step < steps_; ++step) microseconds[c][step] *= Middle(std::move(turns[c][step]));
    }
    return microseconds;
  }

  // What the plan takes so of its time on all threads.
  StatusOr<double> CompareWhole(std::span<const int> chosen, absl::Time end) {
    std::vector<double> turns;
    for (int turn = 0; turn < kMostTurns && (turn < kLeastTurns || absl::Now() < end); ++turn) {
      SWIZZLE_ASSIGN_OR_RETURN(const Durations all, TimeAll(counts_.front()));
      SWIZZLE_ASSIGN_OR_RETURN(const Durations times, time_steps_(chosen));
      turns.push_back(RatioOf(Sum(times), Sum(all)));
    }
    return Middle(std::move(turns));
  }

  const int steps_;
  const std::vector<int> counts_;
  const TimeSteps time_steps_;
};

std::optional<StepTimes> Known(const TuningCache& cache, uint64_t plan_hash, int steps, const std::vector<int>& counts) {
  StepTimes times;
  for (int count : counts) {
    std::vector<double>& of_count = times.steps.emplace_back();
    for (int step = 0; step < steps; ++step) {
      const auto known = cache.FindStep(plan_hash, step, count);
      if (!known) return std::nullopt;
      of_count.push_back(*known);
    }
  }
  const auto chosen = cache.FindStep(plan_hash, TuningCache::kAllSteps, TuningCache::kChosenThreads);
  if (!chosen) return std::nullopt;
  times.chosen = *chosen;
  return times;
}

void Remember(const StepTimes& times, uint64_t plan_hash, const std::vector<int>& counts, TuningCache& cache) {
  for (size_t c = 0; c < counts.size(); ++c) {
    for (size_t step = 0; step < times.steps[c].size(); ++step) {
      cache.AddStep(plan_hash, static_cast<int>(step), counts[c], times.steps[c][step]);
    }
  }
  cache.AddStep(plan_hash, TuningCache::kAllSteps, TuningCache::kChosenThreads, times.chosen);
}

}  // namespace

StatusOr<std::vector<int>> ChooseStepThreads(int steps, int threads, absl::Duration budget, TuningCache* cache,
                                             uint64_t plan_hash, TimeSteps time_steps) {
  const std::vector<int> all(steps, threads);
  if (threads == 1 || steps == 0) return all;
  const std::vector<int> counts = Counts(threads);
  std::optional<StepTimes> times;
  if (cache != nullptr) times = Known(*cache, plan_hash, steps, counts);
  if (!times) {
    if (budget <= absl::ZeroDuration()) return all;
    SWIZZLE_ASSIGN_OR_RETURN(times, Measurement(steps, counts, time_steps).Run(budget));
    if (!times) return all;
    if (cache != nullptr) Remember(*times, plan_hash, counts, *cache);
  }
  return times->chosen < times->All() * (1.0 - kWholeGain) ? ThreadsOf(times->Best(), counts) : all;
}

}  // namespace swizzle
