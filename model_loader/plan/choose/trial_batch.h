// What a plan is given to be timed on.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_BATCH_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_BATCH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "model_loader/plan/run/plan.h"

namespace swizzle {

// Tokens of a row that is timed: a middling length, of which a fixed batch fits the plan; 0 where it has no sequences.
int64_t TrialLength(const Plan& plan);

// Inputs of zeros, in a state of their own. Single-owner.
class TrialBatch {
 public:
  // `plan` outlives it.
  static StatusOr<TrialBatch> Make(const Plan& plan);

  BatchSize SizeOf(int64_t rows) const { return length_ == 0 ? BatchSize(rows) : BatchSize(rows, rows * length_); }
  // Before each run, which may overwrite its inputs.
  void Fill(int64_t rows);
  ExecutionState& state() { return state_; }
  // Of the rows that were filled last; null where the plan has none.
  const Sequences* sequences() const { return length_ == 0 ? nullptr : &sequences_; }

 private:
  TrialBatch(const Plan& plan, ExecutionState state)
      : plan_(plan), length_(TrialLength(plan)), state_(std::move(state)) {}

  const Plan& plan_;
  const int64_t length_;
  ExecutionState state_;
  std::vector<int32_t> begins_, positions_;
  Sequences sequences_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_BATCH_H_
