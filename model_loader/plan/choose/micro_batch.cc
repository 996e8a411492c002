#include "model_loader/plan/choose/micro_batch.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model_loader/plan/choose/median.h"
#include "model_loader/plan/choose/trial_batch.h"

namespace swizzle {
namespace {

constexpr int64_t kFewestRows = 8;  // of the batch that is measured, at least
constexpr int64_t kMostRows = 64;
constexpr int kLeastTurns = 2;
constexpr int kMostTurns = 8;

// How long a batch in `runs` runs of so many rows takes, if it is done by `give_up`.
StatusOr<std::optional<absl::Duration>> TimeRuns(Runner& runner, TrialBatch& trial, int64_t rows, int64_t runs,
                                                 ElapsedTime now, absl::Duration give_up) {
  absl::Duration spent;
  for (int64_t run = 0; run < runs; ++run) {
    if (run > 0 && now() > give_up) return std::nullopt;
    trial.Fill(rows);
    const absl::Duration start = now();
    SWIZZLE_RETURN_IF_ERROR(trial.sequences() == nullptr ? runner.RunPart({run * rows, rows, runs * rows})
                                                         : runner.Run(trial.SizeOf(rows), trial.sequences()));
    spent += now() - start;
  }
  return std::optional(spent);
}

// The rows of the batch that is measured: a power of two.
int64_t MeasuredRows(const Plan& plan, int64_t length) {
  const int64_t threads = plan.report().threads;
  const int64_t wanted = std::clamp(threads, kFewestRows, kMostRows);
  const int64_t most = length == 0 ? plan.max_batch() : std::min(plan.max_batch(), plan.max_tokens() / length);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(most, wanted))));
}

// How long a batch of `rows` takes in runs of 1, 2, 4, ... rows; none if by its first row one batch would take too much
// of the budget, or two turns do: nothing more is run then, since every start of a server would wait for it. Sizes are
// compared within each turn: a machine that is slow for seconds and then fast for one size of a turn would else make
// that the least of all. Beside busy processes they are compared by their work, and none is told where there is none.
StatusOr<std::vector<absl::Duration>> MeasureSizes(const Plan& plan, int64_t rows, absl::Duration budget,
                                                   ElapsedTime now, TrialConditions& conditions) {
  conditions.BeforeThreads();
  SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner, plan.NewRunner({}));
  conditions.AfterThreads();
  TrialBatch trial(plan, *runner);
  SWIZZLE_ASSIGN_OR_RETURN(const auto first, TimeRuns(*runner, trial, 1, 1, now, absl::InfiniteDuration()));
  if (*first * rows > budget / 4) return std::vector<absl::Duration>();
  const size_t sizes = std::bit_width(static_cast<uint64_t>(rows));
  double unit = std::numeric_limits<double>::infinity(), unit_of_work = unit;
  std::vector<std::vector<double>> ratios(sizes), of_work(sizes);
  const absl::Duration end = now() + budget, give_up = now() + budget * TuningShare::kPatience;
  for (int turn = 0; turn < kMostTurns && (turn < kLeastTurns || now() < end); ++turn) {
    std::vector<double> times(sizes), works;
    for (size_t i = 0; i < sizes; ++i) {
      SWIZZLE_RETURN_IF_ERROR(conditions.Begin());
      const absl::Duration most = turn < kLeastTurns ? give_up : absl::InfiniteDuration();
      conditions.StartWork();
      const auto timed = TimeRuns(*runner, trial, int64_t{1} << i, rows >> i, now, most);
      const std::optional<absl::Duration> work = conditions.StopWork();
      SWIZZLE_ASSIGN_OR_RETURN(const auto time, timed);
      conditions.End();
      if (!time) return std::vector<absl::Duration>();
      times[i] = absl::ToDoubleMicroseconds(*time);
      if (work) works.push_back(absl::ToDoubleMicroseconds(*work));
    }
    const double median = std::max(Median(times), 1e-3);
    unit = std::min(unit, median);
    for (size_t i = 0; i < sizes; ++i) ratios[i].push_back(times[i] / median);
    if (works.size() < sizes) continue;
    const double median_work = std::max(Median(works), 1e-3);
    unit_of_work = std::min(unit_of_work, median_work);
    for (size_t i = 0; i < sizes; ++i) of_work[i].push_back(works[i] / median_work);
  }
  if (conditions.IsSuspicious()) {
    if (std::ssize(of_work[0]) < kLeastTurns) return std::vector<absl::Duration>();
    ratios = std::move(of_work);
    unit = unit_of_work;
    conditions.TrustWork();
  }
  std::vector<absl::Duration> times;
  times.reserve(ratios.size());
  for (std::vector<double>& each : ratios) times.push_back(absl::Microseconds(unit * Median(std::move(each))));
  return times;
}

}  // namespace

StatusOr<int64_t> ChooseMicroBatch(const Plan& plan, absl::Duration budget, TuningCache* cache, uint64_t plan_hash,
                                   ElapsedTime now, TrialConditions& conditions) {
  const int64_t length = TrialLength(plan);
  const int64_t all = length == 0 ? plan.max_batch() : plan.max_tokens();
  const int64_t rows = MeasuredRows(plan, length);
  if (plan.network().batch_size > 0 || rows < 2) return all;
  const int sizes = static_cast<int>(std::bit_width(static_cast<uint64_t>(rows)));
  std::vector<absl::Duration> times;
  for (int i = 0; cache != nullptr && i < sizes; ++i) {
    const auto known = cache->FindRuns(plan_hash, rows, int64_t{1} << i);
    if (!known) break;
    times.push_back(absl::Microseconds(*known));
  }
  if (static_cast<int>(times.size()) < sizes) {
    if (budget <= absl::ZeroDuration()) {
      conditions.AddUntimed();
      return all;
    }
    SWIZZLE_ASSIGN_OR_RETURN(times, MeasureSizes(plan, rows, budget, now, conditions));
    if (times.empty()) return all;
    if (conditions.TakeSuspicion()) cache = nullptr;
    for (int i = 0; cache != nullptr && i < sizes; ++i) {
      cache->AddRuns(plan_hash, rows, int64_t{1} << i, absl::ToDoubleMicroseconds(times[i]));
    }
  }
  const int64_t best = int64_t{1} << (std::ranges::min_element(times) - times.begin());
  if (best == rows) return all;
  return length == 0 ? best : best * length;
}

}  // namespace swizzle
