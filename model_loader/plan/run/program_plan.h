// What plans of a program say of it, whatever they run it on.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_PROGRAM_PLAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_PROGRAM_PLAN_H_

#include <memory>
#include <utility>

#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/program.h"

namespace swizzle {

// Immutable.
class ProgramPlan : public Plan {
 public:
  const Network& network() const final { return program_->network(); }
  const PlanReport& report() const final { return report_; }
  int64_t max_batch() const final { return program_->max_size().rows; }
  int64_t max_tokens() const final { return network().sequences ? program_->max_size().tokens : 0; }
  int64_t IdLimit(int i) const final { return program_->IdLimit(i); }
  int64_t PositionLimit() const final { return program_->position_limit(); }
  size_t arena_bytes() const final { return program_->arena_bytes(); }
  size_t ArenaBytes(BatchSize size) const final { return program_->ArenaBytes(size); }
  bool has_tail() const final { return program_->has_tail(); }

 protected:
  ProgramPlan(std::shared_ptr<const Program> program, PlanReport report)
      : program_(std::move(program)), report_(std::move(report)) {}

  const std::shared_ptr<const Program>& program() const { return program_; }

 private:
  const std::shared_ptr<const Program> program_;
  const PlanReport report_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_PROGRAM_PLAN_H_
