// What an executor runs batches with: a plan and a runner of it, which may be replaced between two batches.
#ifndef SWIZZLE_SERVER_MODEL_PLAN_SEAT_H_
#define SWIZZLE_SERVER_MODEL_PLAN_SEAT_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/plan/run/plan.h"
#include "server/model/compute_turns.h"

namespace swizzle {

// Thread-safe. The executor holds `mutex` while it runs a batch; whoever replaces the plan waits for it.
class PlanSeat {
 public:
  // `runner` is the plan's, made with `options`, whose gate is `turn`; that may be null.
  PlanSeat(std::shared_ptr<const Plan> plan, std::unique_ptr<Runner> runner, const RunnerOptions& options,
           std::unique_ptr<ExecutorTurn> turn)
      : options_(options), turn_(std::move(turn)), plan_(std::move(plan)), runner_(std::move(runner)) {}

  // Makes a runner of a plan of the same network on the same backend. From the next batch on it runs; the one before is
  // gone when this returns. Fails, and changes nothing, if the runner can't be had.
  Status Replace(std::shared_ptr<const Plan> plan) {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Runner> runner, plan->NewRunner(options_));
    {
      MutexLock lock(mutex_);
      std::swap(plan_, plan);
      std::swap(runner_, runner);
    }
    runner = nullptr;  // outside the lock; before its plan, which is an argument
    return absl::OkStatus();
  }

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  const Plan& plan() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return *plan_; }
  // For a batch of so many rows, or tokens.
  BatchTurn BeginBatch(int64_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const PlanReport& report = plan_->report();
    return {turn_.get(), count <= report.small_batch ? 1 : report.threads};
  }
  // Whether any thread may run a batch now, and waits for nothing (Session::RunsAtOnce): one that is at home on no
  // processor, and computes on the host, where turns are taken.
  bool RunsAtOnce() const { return turn_ != nullptr && !options_.pinned_executor && turn_->idle(); }
  Runner& runner() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return *runner_; }

 private:
  const RunnerOptions options_;
  const std::unique_ptr<ExecutorTurn> turn_;
  mutable Mutex mutex_;
  std::shared_ptr<const Plan> plan_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Runner> runner_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_PLAN_SEAT_H_
