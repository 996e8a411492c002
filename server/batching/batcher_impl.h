// The batcher as it is. What callers ask for is in batcher.cc, what its threads do in batcher_threads.cc.
#ifndef SWIZZLE_SERVER_BATCHING_BATCHER_IMPL_H_
#define SWIZZLE_SERVER_BATCHING_BATCHER_IMPL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "server/batching/admission.h"
#include "server/batching/batch.h"
#include "server/batching/batch_policy.h"
#include "server/batching/batcher.h"
#include "server/batching/request_queue.h"
#include "server/telemetry/no_metrics.h"

namespace swizzle {

class BatcherImpl final : public Batcher {
 public:
  BatcherImpl(std::shared_ptr<Model> model, std::vector<std::unique_ptr<Session>> sessions, Clock& clock,
              ModelMetrics* metrics);
  ~BatcherImpl() override;

  // The threads; an error if the system has not as many.
  Status Start();

  Status CheckRoom(uint64_t connection, Instant deadline) const override;
  StatusOr<Ticket> Submit(Request request, Done done) override;
  void Cancel(Ticket ticket) override;
  void Drain() override;
  int64_t queued() const override;
  void HoldUntilQueued(int64_t count) override;

 private:
  void RunExecutor(int executor);
  void RunBatch(Batch& batch, int executor);
  bool NextBatch(Batch& batch);
  bool AwaitWork(Batch& batch, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Instant TakeWork(Batch& batch, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sleep(Instant wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBorrow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunBorrowed() noexcept;
  bool TakeBorrowed(PendingList& expired, Instant end);
  Status Execute(Batch& batch, int executor);
  void ExecuteEachAlone(Batch& batch, int executor);
  void EndAll(Batch& batch, const Status& status);
  void RecordSuccess(const Batch& batch, const BatchTimes& times);
  void RunExpiry();
  Instant TakeExpired(PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status Admit(const Queued& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  const Status cancelled_ = absl::CancelledError("the request was cancelled while it was queued");
  Clock& clock_;
  ModelMetrics& metrics_;
  std::vector<Batch> alone_;  // [executor] of one request; made before it is needed, which may be when memory is out
  Batch borrowed_batch_;      // of the thread that has set borrowed_
  std::vector<std::thread> threads_;  // executors, then the expiry thread; constant after Start

  mutable Mutex mutex_;
  CondVar work_;            // executors: there may be something to take
  CondVar expiry_changed_;  // the expiry thread: expiry_wake_ has moved forward
  CondVar ended_;           // Drain: live_ is 0
  RequestQueue queue_ ABSL_GUARDED_BY(mutex_);
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t live_ ABSL_GUARDED_BY(mutex_) = 0;      // requests submitted and not yet ended
  int64_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // work of batches that run
  ServiceTime service_time_ ABSL_GUARDED_BY(mutex_);
  ServiceTime short_time_ ABSL_GUARDED_BY(mutex_);  // the same, but a batch that was held up counts little
  bool borrowed_ ABSL_GUARDED_BY(mutex_) = false;   // a thread in Submit runs batches in the only executor's place
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;            // executors in a wait; while there are any, they see to deadlines
  int watching_ ABSL_GUARDED_BY(mutex_) = 0;  // executors that watch arrivals_, and take what comes without a signal
  std::atomic<uint64_t> arrivals_ = 0;        // requests ever queued; written under the lock
  Instant expiry_wake_ ABSL_GUARDED_BY(mutex_) = Instant::InfiniteFuture();  // when the expiry thread looks next
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_BATCHER_IMPL_H_
