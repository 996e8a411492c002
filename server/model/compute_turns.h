// Turns on the processors for models whose executors have more threads than there are processors.
//
// Pools of threads on the same processors delay each other by time slices, at the end of every step: beside a model
// that is never idle, one of 4 ms took 20. So one model computes at a time. It gives way between two steps, to the
// model that has had the least of the processors, when it is ahead of that by a turn's length; and when its batches are
// done. A model that was idle is as far behind as counts, and so answers nearly as if it were alone.
//
// Thread-safe. Times are of all processors: half of the threads for 2 ms are 1 ms.
#ifndef SWIZZLE_SERVER_MODEL_COMPUTE_TURNS_H_
#define SWIZZLE_SERVER_MODEL_COMPUTE_TURNS_H_

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "model_loader/plan/run/plan.h"
#include "server/threading/clock.h"

namespace swizzle {

class ComputeTurns {
 public:
  static constexpr absl::Duration kTurn = absl::Milliseconds(5);
  // How far behind, or ahead of, the others a model is at most when it begins.
  static constexpr absl::Duration kMostApart = absl::Milliseconds(100);

  // What a model has had; by all of its executors.
  struct Share {
    absl::Duration used;
    int executors = 0;  // that run batches now
    int threads = 0;    // of those
  };

  // `clock` outlives this.
  explicit ComputeTurns(int processors, Clock& clock = Clock::Real()) : processors_(processors), clock_(clock) {}

  // Whether no model runs a batch: one that begins now waits for none.
  bool idle() const { return !computing_.load(std::memory_order_relaxed); }

 private:
  friend class ExecutorTurn;

  void Begin(Share& share, int threads);
  void End(Share& share, int threads, Instant& since);
  bool MustWait(Share& share, int threads, Instant& since);
  void Wait(const Share& share, int threads, Instant& since);

  void Charge(Share& share, int threads, Instant& since) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRun(const Share& share, int threads) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Share* Least() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int processors_;
  Clock& clock_;
  std::atomic<bool> computing_ = false;  // some model; written under the lock, like the next
  std::atomic<bool> contended_ = false;  // several models, more threads than processors
  Mutex mutex_;
  CondVar changed_;
  std::vector<Share*> active_ ABSL_GUARDED_BY(mutex_);  // models that run batches
  Share* holder_ ABSL_GUARDED_BY(mutex_) = nullptr;     // of those, whose turn it is; null: there are none
};

// An executor's part in it: between Begin and End it runs a batch, and asks between steps. Single-owner.
class ExecutorTurn final : public StepGate {
 public:
  // `turns` and `share`, its model's, are kept alive.
  ExecutorTurn(std::shared_ptr<ComputeTurns> turns, std::shared_ptr<ComputeTurns::Share> share)
      : turns_(std::move(turns)), share_(std::move(share)) {}

  void Begin(int threads) {
    threads_ = threads;
    since_ = turns_->clock_.Now();
    turns_->Begin(*share_, threads);
  }
  void End() { turns_->End(*share_, threads_, since_); }
  bool idle() const { return turns_->idle(); }  // of all
  bool MustWait() override { return turns_->MustWait(*share_, threads_, since_); }
  void Wait() override { turns_->Wait(*share_, threads_, since_); }

 private:
  const std::shared_ptr<ComputeTurns> turns_;
  const std::shared_ptr<ComputeTurns::Share> share_;
  int threads_ = 0;
  Instant since_;  // what it computed before is counted
};

// From here to the end of the block a batch runs. `turn` may be null.
class BatchTurn {
 public:
  BatchTurn(ExecutorTurn* turn, int threads) : turn_(turn) {
    if (turn_ != nullptr) turn_->Begin(threads);
  }
  ~BatchTurn() {
    if (turn_ != nullptr) turn_->End();
  }
  BatchTurn(const BatchTurn&) = delete;
  BatchTurn& operator=(const BatchTurn&) = delete;

 private:
  ExecutorTurn* const turn_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_COMPUTE_TURNS_H_
