#include "server/batching/batcher.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "server/batching/admission.h"
#include "server/batching/batch.h"
#include "server/batching/batch_policy.h"
#include "server/batching/request_queue.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/no_metrics.h"

namespace swizzle {
namespace {

// For so long an executor of a GPU watches the queue before it sleeps: to wake a thread takes up to 50 us on a
// processor that was idle meanwhile, a third of what a small model computes. On the CPU watching would cost other
// threads more.
constexpr absl::Duration kWatchTime = absl::Milliseconds(1);

// After it what failed for want of memory is tried again.
constexpr absl::Duration kMemoryPause = absl::Milliseconds(10);

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
  bool NextBatch(Batch& batch);
  bool AwaitWork(Batch& batch, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Instant TakeWork(Batch& batch, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
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
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;      // executors in a wait; while there are any, they see to deadlines
  int watching_ ABSL_GUARDED_BY(mutex_) = 0;  // executors that watch arrivals_, and take what comes without a signal
  std::atomic<uint64_t> arrivals_ = 0;        // requests ever queued; written under the lock
  Instant expiry_wake_ ABSL_GUARDED_BY(mutex_) = Instant::InfiniteFuture();  // when the expiry thread looks next
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

BatcherImpl::BatcherImpl(std::shared_ptr<Model> model, std::vector<std::unique_ptr<Session>> sessions, Clock& clock,
                         ModelMetrics* metrics)
    : model_(std::move(model)),
      sessions_(std::move(sessions)),
      bounds_(BoundsOf(model_->spec())),
      clock_(clock),
      metrics_(OrNone(metrics)),
      alone_(sessions_.size()),
      limits_(LimitsOf(model_->spec())) {
  for (Batch& batch : alone_) batch.requests.resize(1);
}

Status BatcherImpl::Start() {
  return Contain("start the model's executors", [this] {
    threads_.reserve(sessions_.size() + 1);
    for (size_t i = 0; i < sessions_.size(); ++i) {
      threads_.emplace_back([this, i] { RunExecutor(static_cast<int>(i)); });
    }
    threads_.emplace_back([this] { RunExpiry(); });
    return absl::OkStatus();
  });
}

BatcherImpl::~BatcherImpl() {
  Drain();
  {
    MutexLock lock(mutex_);
    closed_ = true;
    work_.SignalAll();
    expiry_changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

StatusOr<Ticket> BatcherImpl::Submit(Request request, Done done) {
  const ModelSpec& spec = model_->spec();
  SWIZZLE_CHECK(request.rows >= 1 && (spec.max_batch_size == 0 || request.rows <= spec.max_batch_size));
  auto pending = std::make_unique<Pending>();
  pending->arrival = clock_.Now();
  pending->request = std::move(request);
  pending->request.deadline = std::min(pending->request.deadline, pending->arrival + spec.default_timeout);
  pending->done = std::move(done);

  Ticket ticket;
  bool executor_asleep;
  {
    MutexLock lock(mutex_);
    SWIZZLE_RETURN_IF_ERROR(Admit(SummaryOf(*pending)));
    const Instant deadline = pending->request.deadline;
    ticket = pending->ticket = ++last_ticket_;
    queue_.Push(pending);
    ++live_;
    executor_asleep = idle_ > 0 && watching_ == 0;
    if (idle_ + watching_ == 0) ArmExpiry(deadline);
    metrics_.AddInflight(1);
    arrivals_.fetch_add(1, std::memory_order_relaxed);
    QueueChanged();
  }
  if (executor_asleep) work_.Signal();  // outside the lock, so that the executor does not wake only to wait for it
  return ticket;
}

Status BatcherImpl::CheckRoom(uint64_t connection, Instant deadline) const {
  Queued smallest;
  smallest.connection = connection;
  smallest.arrival = clock_.Now();
  smallest.deadline = deadline;
  MutexLock lock(mutex_);
  return Admit(smallest);
}

Status BatcherImpl::Admit(const Queued& request) const {
  const ModelSpec& spec = model_->spec();
  if (draining_) {
    metrics_.RecordRejected(Rejection::kDraining, absl::ZeroDuration());
    return MakeError(StatusCode::kUnavailable, "model '", spec.name, "' is shutting down");
  }
  const QueueLoad& waiting = queue_.load();
  const absl::Duration expected = service_time_.Of(waiting.work + running_, bounds_.batch_work) / bounds_.executors;
  const std::optional<Refusal> refusal = Refuse(bounds_, waiting, queue_.LoadOf(request.connection), request, expected,
                                                request.deadline - request.arrival);
  if (!refusal) return absl::OkStatus();
  metrics_.RecordRejected(refusal->why, absl::ZeroDuration());
  return MakeError(StatusCode::kResourceExhausted, "the queue of model '", spec.name, "' is full (", refusal->reason,
                   "); try again later");
}

void BatcherImpl::Cancel(Ticket ticket) {
  std::unique_ptr<Pending> pending;
  {
    MutexLock lock(mutex_);
    pending = queue_.TakeTicket(ticket);
    if (pending == nullptr) return;
    QueueChanged();
  }
  FailOne(std::move(pending), cancelled_, Rejection::kCancelled);
  MutexLock lock(mutex_);
  Forget(1);
}

void BatcherImpl::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
  limits_.max_delay = absl::ZeroDuration();
  limits_.hold_until = 0;
  work_.SignalAll();
  while (live_ > 0) ended_.Wait(mutex_);
}

int64_t BatcherImpl::queued() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(queue_.size());
}

void BatcherImpl::HoldUntilQueued(int64_t count) {
  MutexLock lock(mutex_);
  limits_.hold_until = draining_ ? 0 : static_cast<size_t>(count);
  work_.SignalAll();
}

void BatcherImpl::RunExecutor(int executor) {
  Batch batch;
  while (NextBatch(batch)) {
    const size_t count = batch.requests.size();
    const Status status = Execute(batch, executor);
    if (status.ok() || count == 1) {
      EndAll(batch, status);
    } else {
      ExecuteEachAlone(batch, executor);
    }
    MutexLock lock(mutex_);
    running_ -= batch.work;
    if (status.ok()) service_time_.Record(batch.full(), batch.work, batch.busy);
    Forget(count);
  }
}

// Waits for a batch; false once the batcher is closed.
bool BatcherImpl::NextBatch(Batch& batch) {
  batch.requests.clear();
  while (batch.requests.empty()) {
    PendingList expired;
    {
      MutexLock lock(mutex_);
      if (!AwaitWork(batch, expired)) return false;
    }
    if (!expired.empty()) Fail(std::move(expired), late_, Rejection::kTimeout);
  }
  return true;
}

// Fills `batch`, `expired` or both, as soon as there is something for either; false once the batcher is closed.
bool BatcherImpl::AwaitWork(Batch& batch, PendingList& expired) {
  bool watch = model_->spec().instance_kind == InstanceKind::kGpu;
  while (!closed_) {
    const Instant wake = TakeWork(batch, expired);
    if (!expired.empty() || !batch.requests.empty()) {
      QueueChanged();
      HandOverRest();
      return true;
    }
    if (std::exchange(watch, false) && queue_.size() == 0) {
      WatchQueue();
      continue;
    }
    ++idle_;
    clock_.WaitUntil(mutex_, work_, wake);
    --idle_;
  }
  return false;
}

// Moves what the policy says to `batch` and `expired`; returns when to ask it again.
Instant BatcherImpl::TakeWork(Batch& batch, PendingList& expired) {
  const Instant now = clock_.Now();
  try {
    const Decision decision = Decide(queue_.summaries(), now, limits_);
    queue_.Take(decision.expired, expired);
    if (decision.take == 0) return decision.wake;
    const int64_t waiting = queue_.load().work;
    queue_.TakeFront(decision.take, batch.requests);
    batch.work = waiting - queue_.load().work;
    batch.start = now;
    batch.reason = decision.reason;
    running_ += batch.work;
    limits_.hold_until = 0;
    return decision.wake;
  } catch (...) {
    CaughtStatus("form a batch").IgnoreError();
    return now + kMemoryPause;
  }
}

// Returns once a request was queued, or after kWatchTime. Of several who watch, one finds the request.
void BatcherImpl::WatchQueue() {
  const uint64_t seen = arrivals_.load(std::memory_order_relaxed);
  ++watching_;
  mutex_.Unlock();
  const Instant end = Clock::Real().Now() + kWatchTime;  // not clock_'s, which may stand still
  while (arrivals_.load(std::memory_order_relaxed) == seen && Clock::Real().Now() < end) {
    std::this_thread::yield();
  }
  mutex_.Lock();
  --watching_;
}

// Fills the batch's results.
Status BatcherImpl::Execute(Batch& batch, int executor) {
  Status status = Contain("run the batch", [&]() -> Status {
    BatchTimes times;
    batch.MakeItems();
    SWIZZLE_RETURN_IF_ERROR(sessions_[static_cast<size_t>(executor)]->Run(batch.items, times));
    RecordSuccess(batch, times);
    for (size_t i = 0; i < batch.requests.size(); ++i) {
      Result& result = batch.results[i];
      result.queue = batch.start - batch.requests[i]->arrival;
      result.input = times.input;
      result.compute = times.compute;
      result.output = times.output;
      result.batch_rows = batch.rows;
    }
    return absl::OkStatus();
  });
  batch.busy = clock_.Now() - batch.start;
  metrics_.AddBusy(executor, batch.busy);
  return status;
}

// After a batch has failed: what is wrong with one of its requests, or too much of all together, fails no other. Costs
// a failing model one run more for each request.
void BatcherImpl::ExecuteEachAlone(Batch& batch, int executor) {
  Batch& alone = alone_[static_cast<size_t>(executor)];
  for (std::unique_ptr<Pending>& pending : batch.requests) {
    alone.start = clock_.Now();
    alone.reason = BatchReason::kRetry;
    const bool late = pending->request.deadline <= alone.start;
    alone.requests[0] = std::move(pending);
    EndAll(alone, late ? late_ : Execute(alone, executor));
  }
}

// With the results, or with what ended the batch.
void BatcherImpl::EndAll(Batch& batch, const Status& status) {
  for (size_t i = 0; i < batch.requests.size(); ++i) {
    if (status.ok()) {
      End(std::move(batch.requests[i]), std::move(batch.results[i]));
    } else {
      End(std::move(batch.requests[i]), status);
    }
  }
}

void BatcherImpl::RecordSuccess(const Batch& batch, const BatchTimes& times) {
  int64_t positions = 0;
  for (const auto& pending : batch.requests) {
    positions += PositionsOf(pending->request);
    metrics_.RecordQueued(batch.start - pending->arrival);
  }
  metrics_.RecordBatch({.requests = static_cast<int64_t>(batch.requests.size()),
                        .rows = batch.rows,
                        .positions = positions,
                        .reason = batch.reason,
                        .times = times});
}

// Ends requests whose deadline comes while every executor is busy.
void BatcherImpl::RunExpiry() {
  while (true) {
    PendingList expired;
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      const Instant next = TakeExpired(expired);
      if (expired.empty()) {
        expiry_wake_ = idle_ > 0 ? Instant::InfiniteFuture() : next;
        clock_.WaitUntil(mutex_, expiry_changed_, expiry_wake_);
        continue;
      }
      QueueChanged();
    }
    Fail(std::move(expired), late_, Rejection::kTimeout);
  }
}

// Returns when the next deadline comes.
Instant BatcherImpl::TakeExpired(PendingList& expired) {
  const Instant now = clock_.Now();
  try {
    const Expiry expiry = FindExpired(queue_.summaries(), now);
    queue_.Take(expiry.expired, expired);
    return expiry.next_deadline;
  } catch (...) {
    CaughtStatus("end what is late").IgnoreError();
    return now + kMemoryPause;
  }
}

// This executor is about to be busy: somebody else has to see to what is still queued.
void BatcherImpl::HandOverRest() {
  if (queue_.size() == 0) return;
  if (idle_ > 0) {
    work_.Signal();
  } else {
    ArmExpiry(FindExpired(queue_.summaries(), Instant::InfinitePast()).next_deadline);
  }
}

void BatcherImpl::ArmExpiry(Instant deadline) {
  if (deadline >= expiry_wake_) return;
  expiry_wake_ = deadline;
  expiry_changed_.Signal();
}

void BatcherImpl::QueueChanged() { metrics_.SetQueueDepth(static_cast<int64_t>(queue_.size())); }

void BatcherImpl::Fail(PendingList requests, const Status& status, Rejection why) {
  for (auto& pending : requests) FailOne(std::move(pending), status, why);
  MutexLock lock(mutex_);
  Forget(requests.size());
}

void BatcherImpl::FailOne(std::unique_ptr<Pending> pending, const Status& status, Rejection why) {
  metrics_.RecordRejected(why, clock_.Now() - pending->arrival);
  End(std::move(pending), status);
}

void BatcherImpl::End(std::unique_ptr<Pending> pending, StatusOr<Result> result) {
  metrics_.AddInflight(-1);
  std::move(pending->done)(std::move(result));
}

// After `ended` requests have ended, done included.
void BatcherImpl::Forget(size_t ended) {
  live_ -= ended;
  if (draining_ && live_ == 0) ended_.SignalAll();
}

}  // namespace

StatusOr<std::unique_ptr<Batcher>> NewBatcher(std::shared_ptr<Model> model, Clock& clock, ModelMetrics* metrics) {
  SWIZZLE_CHECK(model->spec().executors() >= 1);
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < model->spec().executors(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(sessions.emplace_back(), model->NewSession(clock));
  }
  auto batcher = std::make_unique<BatcherImpl>(std::move(model), std::move(sessions), clock, metrics);
  SWIZZLE_RETURN_IF_ERROR(batcher->Start());
  return batcher;
}

}  // namespace swizzle
