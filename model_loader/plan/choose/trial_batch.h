// What a plan is given to be timed on.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_BATCH_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_BATCH_H_

#include <cstdint>
#include <vector>

#include "model_loader/plan/run/plan.h"

namespace swizzle {

// Tokens of a row that is timed: a middling length, of which a fixed batch fits the plan; 0 where it has no sequences.
int64_t TrialLength(const Plan& plan);

// Inputs of zeros for a runner of the plan. Single-owner.
class TrialBatch {
 public:
  // Both outlive it.
  TrialBatch(const Plan& plan, Runner& runner) : plan_(plan), runner_(runner), length_(TrialLength(plan)) {}

  BatchSize SizeOf(int64_t rows) const { return length_ == 0 ? BatchSize(rows) : BatchSize(rows, rows * length_); }
  // Before each run, which may overwrite its inputs.
  void Fill(int64_t rows);
  // Of the rows that were filled last; null where the plan has none.
  const Sequences* sequences() const { return length_ == 0 ? nullptr : &sequences_; }

 private:
  const Plan& plan_;
  Runner& runner_;
  const int64_t length_;
  std::vector<int32_t> begins_, positions_;
  Sequences sequences_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_TRIAL_BATCH_H_
