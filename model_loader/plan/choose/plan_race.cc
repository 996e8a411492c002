#include "model_loader/plan/choose/plan_race.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/base/integers.h"
#include "model_loader/plan/choose/median.h"
#include "model_loader/plan/choose/trial_batch.h"

namespace swizzle {
namespace {

constexpr int kLeastRaceTurns = 5;
constexpr int kMostRaceTurns = 41;
constexpr int64_t kMostRacedRows = 8;
constexpr double kLeastGain = 0.01;  // a plan that gains less isn't worth a change
constexpr double kErrors = 2.0;      // how many standard errors are noise

// Of a batch.
struct TrialTime {
  absl::Duration wall;
  std::optional<absl::Duration> work = absl::ZeroDuration();  // none where one of its runs has none
};

// A plan, as a server runs it.
class Racer {
 public:
  Racer(const Plan& plan, Runner& runner) : plan_(plan), runner_(runner), trial_(plan, runner) {}

  // A batch of so many rows, in as many runs as a server would make of it.
  StatusOr<TrialTime> Time(int64_t rows, TrialConditions& conditions) {
    const int64_t length = std::max<int64_t>(TrialLength(plan_), 1);
    const int64_t at_once = plan_.network().batch_size > 0 ? rows : plan_.report().micro_batch / length;
    const int64_t runs = CeilDiv(rows, std::clamp<int64_t>(at_once, 1, rows));
    TrialTime time;
    SWIZZLE_RETURN_IF_ERROR(conditions.Begin());
    for (int64_t run = 0; run < runs; ++run) {
      const int64_t first = rows * run / runs, count = rows * (run + 1) / runs - first;
      trial_.Fill(count);
      const absl::Duration start = conditions.Spent();
      conditions.StartWork();
      const Status status = trial_.sequences() == nullptr && runs > 1
                                ? runner_.RunPart({first, count, rows})
                                : runner_.Run(trial_.SizeOf(count), trial_.sequences());
      const std::optional<absl::Duration> work = conditions.StopWork();
      SWIZZLE_RETURN_IF_ERROR(status);
      time.wall += conditions.Spent() - start;
      time.work = time.work && work ? std::optional(*time.work + *work) : std::nullopt;
    }
    conditions.End();
    return time;
  }

 private:
  const Plan& plan_;
  Runner& runner_;
  TrialBatch trial_;
};

double Ratio(absl::Duration of, absl::Duration to) {
  return absl::FDivDuration(of, std::max(to, absl::Nanoseconds(1)));
}

// What the challenger takes of the running plan's time, turn by turn.
struct Ratios {
  std::vector<double> by_wall, by_work;

  void Add(const TrialTime& challenger, const TrialTime& running) {
    by_wall.push_back(Ratio(challenger.wall, running.wall));
    if (challenger.work && running.work) by_work.push_back(Ratio(*challenger.work, *running.work));
  }
};

std::vector<int64_t> RacedRows(const Plan& plan) {
  if (plan.network().batch_size > 0) return {plan.max_batch()};
  const int64_t length = TrialLength(plan);
  const int64_t most = length == 0 ? plan.max_batch() : std::min(plan.max_batch(), plan.max_tokens() / length);
  if (most < 2) return {1};
  return {1, std::min(most, kMostRacedRows)};
}

}  // namespace

TimeRatio RatioOf(std::vector<double> ratios) {
  const double median = Median(ratios);
  const auto count = static_cast<double>(ratios.size());
  for (double& ratio : ratios) ratio = std::abs(ratio - median);
  constexpr double kDeviation = 1.4826, kMedian = 1.2533;  // of normal noise: MAD to sigma, mean's error to median's
  return {median, kMedian * kDeviation * Median(std::move(ratios)) / std::sqrt(count)};
}

bool IsFaster(std::span<const TimeRatio> ratios) {
  double gain = 0.0, variance = 0.0;
  for (const TimeRatio& ratio : ratios) {
    if (ratio.median - kErrors * ratio.error > 1.0 + kLeastGain) return false;
    gain -= std::log(ratio.median);
    variance += ratio.error * ratio.error;
  }
  const auto count = static_cast<double>(ratios.size());
  return gain / count > std::max(kLeastGain, kErrors * std::sqrt(variance) / count);
}

StatusOr<std::vector<TimeRatio>> RacePlans(const Plan& challenger_plan, Runner& challenger, const Plan& running_plan,
                                           Runner& running, absl::Duration budget, absl::Duration give_up,
                                           TrialConditions& conditions) {
  Racer first(running_plan, running), second(challenger_plan, challenger);
  const std::vector<int64_t> rows = RacedRows(running_plan);
  std::vector<Ratios> ratios(rows.size());
  const absl::Duration end = conditions.Spent() + budget;
  for (int turn = -1; turn < kMostRaceTurns && (turn < kLeastRaceTurns || conditions.Spent() < end); ++turn) {
    for (size_t i = 0; i < rows.size(); ++i) {
      // Who begins changes: the second finds the caches as the first left them.
      Racer& begins = turn % 2 == 0 ? first : second;
      Racer& follows = turn % 2 == 0 ? second : first;
      if (turn < kLeastRaceTurns && conditions.Spent() > give_up) return std::vector<TimeRatio>();
      SWIZZLE_ASSIGN_OR_RETURN(const TrialTime one, begins.Time(rows[i], conditions));
      SWIZZLE_ASSIGN_OR_RETURN(const TrialTime other, follows.Time(rows[i], conditions));
      if (turn < 0) continue;  // warms up
      turn % 2 == 0 ? ratios[i].Add(other, one) : ratios[i].Add(one, other);
    }
  }
  const bool disturbed = conditions.TakeSuspicion();
  std::vector<TimeRatio> result;
  result.reserve(ratios.size());
  for (Ratios& each : ratios) {
    const bool by_work = disturbed && std::ssize(each.by_work) >= kLeastRaceTurns;
    result.push_back(RatioOf(std::move(by_work ? each.by_work : each.by_wall)));
  }
  return result;
}

}  // namespace swizzle
