#include "model_loader/plan/micro_batch.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace swizzle {
namespace {

constexpr int64_t kLength = 128;    // of the sequences that are measured, at most
constexpr int64_t kFewestRows = 8;  // of the batch that is measured, at least
constexpr int64_t kMostRows = 64;
constexpr int kLeastTurns = 2;
constexpr int kMostTurns = 8;

// Runs a plan on inputs of zeros.
class Trial {
 public:
  // length: tokens of a row, 0 where there are no sequences.
  static StatusOr<Trial> Make(const Plan& plan, int64_t length) {
    SWIZZLE_ASSIGN_OR_RETURN(ExecutionState state, plan.NewState());
    return Trial(plan, length, std::move(state));
  }

  // How long a batch in `runs` runs of so many rows takes.
  StatusOr<absl::Duration> Time(int64_t rows, int64_t runs) {
    const BatchSize size = length_ == 0 ? BatchSize(rows) : BatchSize(rows, rows * length_);
    SetSequences(size);
    const Sequences sequences = {begins_, positions_, {}};
    absl::Duration spent;
    for (int64_t run = 0; run < runs; ++run) {
      ClearInputs(size);
      const absl::Time start = absl::Now();
      SWIZZLE_RETURN_IF_ERROR(length_ == 0 ? plan_.RunPart(state_, {run * rows, rows, runs * rows})
                                           : plan_.Run(state_, size, &sequences));
      spent += absl::Now() - start;
    }
    return spent;
  }

 private:
  Trial(const Plan& plan, int64_t length, ExecutionState state)
      : plan_(plan), length_(length), state_(std::move(state)) {}

  // A run may overwrite them.
  void ClearInputs(BatchSize size) {
    const auto& inputs = plan_.network().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].value != -1) std::ranges::fill(plan_.Input(state_, static_cast<int>(i), size), 0.0f);
    }
  }

  void SetSequences(BatchSize size) {
    begins_.clear();
    positions_.clear();
    if (length_ == 0) return;
    for (int64_t token = 0; token <= size.tokens; token += length_) begins_.push_back(static_cast<int32_t>(token));
    for (int64_t token = 0; token < size.tokens; ++token) positions_.push_back(static_cast<int32_t>(token % length_));
  }

  const Plan& plan_;
  const int64_t length_;
  ExecutionState state_;
  std::vector<int32_t> begins_, positions_;
};

// Tokens of a row; 0 where there are no sequences.
int64_t LengthOf(const Plan& plan) {
  const Network& network = plan.network();
  if (!network.sequences) return 0;
  if (network.sequences->length > 0) return network.sequences->length;
  const int64_t positions = plan.PositionLimit();
  return std::min({kLength, positions > 0 ? positions : kLength, plan.max_tokens()});
}

// The rows of the batch that is measured: a power of two.
int64_t MeasuredRows(const Plan& plan, int64_t length) {
  const int64_t threads = plan.report().threads;
  const int64_t wanted = std::clamp(threads, kFewestRows, kMostRows);
  const int64_t most = length == 0 ? plan.max_batch() : std::min(plan.max_batch(), plan.max_tokens() / length);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(most, wanted))));
}

// The middle value, of an even number the upper one of the two.
template <typename Value>
Value Middle(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// How long a batch of `rows` takes in runs of 1, 2, 4, ... rows; none if by its first row one batch would take too much
// of the budget: nothing more is run then, since every start of a server would wait for it. Sizes are compared within each
// turn: a machine that is slow for seconds and then fast for one size of a turn would else make that the least of all.
StatusOr<std::vector<absl::Duration>> MeasureSizes(const Plan& plan, int64_t length, int64_t rows, absl::Duration budget) {
  SWIZZLE_ASSIGN_OR_RETURN(Trial trial, Trial::Make(plan, length));
  SWIZZLE_ASSIGN_OR_RETURN(const absl::Duration first, trial.Time(1, 1));
  if (first * rows > budget / 4) return std::vector<absl::Duration>();
  const size_t sizes = std::bit_width(static_cast<uint64_t>(rows));
  absl::Duration unit = absl::InfiniteDuration();
  std::vector<std::vector<double>> ratios(sizes);
  const absl::Time end = absl::Now() + budget;
  for (int turn = 0; turn < kMostTurns && (turn < kLeastTurns || absl::Now() < end); ++turn) {
    std::vector<absl::Duration> times(sizes);
    for (size_t i = 0; i < sizes; ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(times[i], trial.Time(int64_t{1} << i, rows >> i));
    }
    const absl::Duration middle = std::max(Middle(times), absl::Nanoseconds(1));
    unit = std::min(unit, middle);
    for (size_t i = 0; i < sizes; ++i) ratios[i].push_back(absl::FDivDuration(times[i], middle));
  }
  std::vector<absl::Duration> times;
  for (std::vector<double>& each : ratios) times.push_back(unit * Middle(std::move(each)));
  return times;
}

}  // namespace

StatusOr<int64_t> ChooseMicroBatch(const Plan& plan, absl::Duration budget, TuningCache* cache, uint64_t plan_hash) {
  const int64_t length = LengthOf(plan);
  const int64_t all = length == 0 ? plan.max_batch() : plan.max_tokens();
  const int64_t rows = MeasuredRows(plan, length);
  if (plan.network().batch_size > 0 || rows < 2) return all;
  const int sizes = std::bit_width(static_cast<uint64_t>(rows));
  std::vector<absl::Duration> times;
  for (int i = 0; cache != nullptr && i < sizes; ++i) {
    const auto known = cache->FindRuns(plan_hash, rows, int64_t{1} << i);
    if (!known) break;
    times.push_back(absl::Microseconds(*known));
  }
  if (static_cast<int>(times.size()) < sizes) {
    if (budget <= absl::ZeroDuration()) return all;
    SWIZZLE_ASSIGN_OR_RETURN(times, MeasureSizes(plan, length, rows, budget));
    if (times.empty()) return all;
    for (int i = 0; cache != nullptr && i < sizes; ++i) {
      cache->AddRuns(plan_hash, rows, int64_t{1} << i, absl::ToDoubleMicroseconds(times[i]));
    }
  }
  const int64_t best = int64_t{1} << (std::ranges::min_element(times) - times.begin());
  if (best == rows) return all;
  return length == 0 ? best : best * length;
}

}  // namespace swizzle
