// What an executor runs batches with: a model's runner, which may be replaced between two batches.
#ifndef SWIZZLE_SERVER_MODEL_RUNNER_SEAT_H_
#define SWIZZLE_SERVER_MODEL_RUNNER_SEAT_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "model_loader/compiled/compiled_model.h"
#include "server/model/compute_turns.h"

namespace swizzle {

// Thread-safe. The executor holds `mutex` while it runs a batch; whoever replaces the runner waits for it.
class RunnerSeat {
 public:
  // Runners are made with `options`, whose gate is `turn`; that may be null.
  static StatusOr<std::shared_ptr<RunnerSeat>> Make(const CompiledModel& model, ModelRunOptions options,
                                                    std::unique_ptr<ExecutorTurn> turn) {
    options.gate = turn.get();
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, model.NewRunner(options));
    return std::shared_ptr<RunnerSeat>(new RunnerSeat(std::move(runner), std::move(options), std::move(turn)));
  }

  // From the next batch on this model runs, which computes the same on the same device; the runner before is gone when
  // this returns. Fails, and changes nothing, if a runner can't be had.
  Status Replace(const CompiledModel& model) {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, model.NewRunner(options_));
    {
      const MutexLock lock(mutex_);
      std::swap(runner_, runner);
    }
    return absl::OkStatus();  // the one before goes outside the lock
  }

  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  ModelRunner& runner() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return *runner_; }
  // For a batch of so many rows, or tokens.
  BatchTurn BeginBatch(int64_t count) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return {turn_.get(), runner_->threads(count)};
  }
  // Whether any thread may run a batch now, and waits for nothing (Session::RunsAtOnce): one that is at home on no
  // processor, and computes on the host, where turns are taken.
  bool RunsAtOnce() const { return turn_ != nullptr && !options_.pinned_executor && turn_->idle(); }

 private:
  RunnerSeat(std::unique_ptr<ModelRunner> runner, ModelRunOptions options, std::unique_ptr<ExecutorTurn> turn)
      : options_(std::move(options)), turn_(std::move(turn)), runner_(std::move(runner)) {}

  const ModelRunOptions options_;
  const std::unique_ptr<ExecutorTurn> turn_;
  mutable Mutex mutex_;
  std::unique_ptr<ModelRunner> runner_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_RUNNER_SEAT_H_
