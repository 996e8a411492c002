// The batcher as it is. What callers ask for is in batcher.cc, what its threads do in batcher_threads.cc.
#ifndef SWIZZLE_SERVER_BATCHING_BATCHER_IMPL_H_
#define SWIZZLE_SERVER_BATCHING_BATCHER_IMPL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/batching/admission.h"
#include "server/batching/batch.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batcher.h"
#include "server/batching/executor_threads.h"
#include "server/batching/request_queue.h"
#include "server/telemetry/no_metrics.h"

namespace swizzle {

class BatcherImpl final : public Batcher {
 public:
  BatcherImpl(std::shared_ptr<Model> model, std::vector<std::unique_ptr<Session>> sessions, Clock& clock,
              ModelMetrics* metrics, std::shared_ptr<ExecutorThreads> threads);
  ~BatcherImpl() override;

  Status CheckRoom(uint64_t connection, Instant deadline) const override;
  StatusOr<Ticket> Submit(Request request, Done done) override;
  void Cancel(Ticket ticket) override;
  void Drain(absl::FunctionRef<void()> progress) override;
  int64_t queued() const override;
  void HoldUntilQueued(int64_t count) override;

 private:
  // One executor while it has a thread.
  class Shift final : public ExecutorThreads::Work {
   public:
    Shift(BatcherImpl& batcher, int executor) : batcher_(batcher), executor_(executor) { alone_.requests.resize(1); }
    void Run() override { batcher_.RunExecutor(*this); }

   private:
    friend class BatcherImpl;
    BatcherImpl& batcher_;
    const int executor_;
    // Made before they are needed, which may be when memory is out.
    Batch batch_;
    Batch alone_;  // of one request
  };
  // For deadlines that come while every executor is busy.
  class ExpiryAlarm final : public ExecutorThreads::Alarm {
   public:
    explicit ExpiryAlarm(BatcherImpl& batcher) : batcher_(batcher) {}
    void Ring() override { batcher_.EndLate(); }

   private:
    BatcherImpl& batcher_;
  };

  void RunExecutor(Shift& shift);
  void RunBatch(Shift& shift);
  bool MakeRoom(Shift& shift);
  bool NextBatch(Shift& shift);
  bool AwaitWork(Shift& shift, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Instant TakeWork(Batch& batch, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sleep(Instant wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBorrow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunsAtOnce() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunBorrowed(Shift& shift) noexcept;
  bool TakeBorrowed(Shift& shift, PendingList& expired, Instant end);
  Status Execute(Batch& batch, int executor);
  void ExecuteEachAlone(Shift& shift, const Status& together);
  void EndAll(Batch& batch, const Status& status);
  void ReturnRests(Batch& batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordSuccess(const Batch& batch);
  void EndLate();
  Instant TakeExpired(PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status Admit(const Queued& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Shift* TakeFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveBack(Shift& shift) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Summon(Shift& shift);
  void ArmExpiry(Instant deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(PendingList requests, const Status& status, Rejection why);
  void FailOne(std::unique_ptr<Pending> pending, const Status& status, Rejection why);
  void End(std::unique_ptr<Pending> pending, StatusOr<Result> result);
  void Forget(size_t ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const std::shared_ptr<Model> model_;
  const std::vector<std::unique_ptr<Session>> sessions_;  // [executor]
  const QueueBounds bounds_;
  // Made before they are needed, which may be when memory is out.
  const Status late_ = absl::DeadlineExceededError("the request's deadline passed while it was queued");
  const Status cancelled_ = absl::CancelledError("the request was cancelled before all of it had run");
  const Status no_memory_ =
      absl::ResourceExhaustedError("there was no memory to go on with the request; try again later");
  Clock& clock_;
  ModelMetrics& metrics_;
  const std::shared_ptr<ExecutorThreads> threads_;
  ExpiryAlarm expiry_{*this};
  std::deque<Shift> shifts_;  // [executor]

  mutable Mutex mutex_;
  CondVar work_;   // executors: there may be something to take
  CondVar ended_;  // Drain: requests have ended; the destructor: an executor has given its thread back
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  RequestQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> passed_ ABSL_GUARDED_BY(mutex_);  // the last Decision's
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t live_ ABSL_GUARDED_BY(mutex_) = 0;                 // requests submitted and not yet ended
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;             // work of batches that run
  std::vector<Pending*> in_parts_ ABSL_GUARDED_BY(mutex_);  // requests in them that have more rows
  ServiceTime service_time_ ABSL_GUARDED_BY(mutex_);
  ServiceTime short_time_ ABSL_GUARDED_BY(mutex_);    // the same, but a batch that was held up counts little
  std::vector<Shift*> free_ ABSL_GUARDED_BY(mutex_);  // executors without a thread; while there are any, or ...
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;              // ... some in a wait, they see to deadlines
  int watching_ ABSL_GUARDED_BY(mutex_) = 0;  // executors that watch arrivals_, and take what comes without a signal
  std::atomic<uint64_t> arrivals_ = 0;        // requests ever queued; written under the lock
  Instant expiry_wake_ ABSL_GUARDED_BY(mutex_) = Instant::InfiniteFuture();  // when expiry_ rings
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCHER_IMPL_H_
