#include "server/batching/batcher.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "server/batching/batch_policy.h"
#include "server/batching/request_queue.h"

namespace swizzle {
namespace {

// For so long an executor of a GPU watches the queue before it sleeps: to wake a thread takes up to 50 us on a
// processor that was idle meanwhile, a third of what a small model computes. On the CPU watching would cost other
// threads more.
constexpr absl::Duration kWatchTime = absl::Milliseconds(1);

class NoMetrics final : public ModelMetrics {
 public:
  void RecordRequest(StatusCode, absl::Duration) override {}
  void RecordQueued(absl::Duration) override {}
  void RecordBatch(const ExecutedBatch&) override {}
  void RecordRejected(Rejection) override {}
  void SetQueueDepth(int64_t) override {}
  void AddInflight(int64_t) override {}
  void AddBusy(int, absl::Duration) override {}
  ModelStatisticsTotals Statistics() const override { return {}; }
};

ModelMetrics& MetricsOrNone(ModelMetrics* metrics) {
  static NoMetrics none;
  return metrics == nullptr ? none : *metrics;
}

Status DeadlinePassed() { return absl::DeadlineExceededError("the request's deadline passed while it was queued"); }

// Positions of one request: its tokens, or everything of its first input but the channels, which are dimension 1.
int64_t Positions(const Request& request) {
  if (request.tokens > 0) return request.tokens;
  if (request.inputs.empty()) return request.rows;
  const Shape& shape = request.inputs.front().shape;
  int64_t positions = shape.empty() ? 1 : shape.front();
  for (size_t i = 2; i < shape.size(); ++i) {
    // Possible where another dimension is 0: there is nothing to compute.
    if (__builtin_mul_overflow(positions, shape[i], &positions)) return 0;
  }
  return positions;
}

// One executor's batch; its vectors are reused from batch to batch.
struct Batch {
  PendingList requests;
  Instant start;
  BatchReason reason = BatchReason::kIdle;
  int64_t rows = 0;
  std::vector<Result> results;   // of requests, same order
  std::vector<BatchItem> items;  // of requests, same order, into results

  void MakeItems() {
    rows = 0;
    items.clear();
    results.clear();
    results.resize(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const Request& request = requests[i]->request;
      items.push_back({request.inputs, request.rows, &results[i].outputs, &results[i].shapes});
      rows += request.rows;
    }
  }
};

class BatcherImpl final : public Batcher {
 public:
  BatcherImpl(std::shared_ptr<Model> model, std::vector<std::unique_ptr<Session>> sessions, Clock& clock,
              ModelMetrics* metrics);
  ~BatcherImpl() override;

  StatusOr<Ticket> Submit(Request request, Done done) override;
  void Cancel(Ticket ticket) override;
  void Drain() override;
  int64_t queued() const override;
  void HoldUntilQueued(int64_t count) override;

 private:
  void RunExecutor(int executor);
  bool NextBatch(Batch& batch);
  bool AwaitWork(Batch& batch, PendingList& expired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Execute(Batch& batch, int executor);
  void RecordSuccess(const Batch& batch, const BatchTimes& times);
  void RunExpiry();

  Status Refusal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverRest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ArmExpiry(Instant deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void QueueChanged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(PendingList requests, const Status& status, Rejection why);
  void End(std::unique_ptr<Pending> pending, StatusOr<Result> result);
  void Forget(size_t ended);

  // Constant after construction.
  const std::shared_ptr<Model> model_;
  const std::vector<std::unique_ptr<Session>> sessions_;  // [executor]
  Clock& clock_;
  ModelMetrics& metrics_;
  std::vector<std::thread> threads_;  // executors, then the expiry thread

  mutable Mutex mutex_;
  CondVar work_;            // executors: there may be something to take
  CondVar expiry_changed_;  // the expiry thread: expiry_wake_ has moved forward
  CondVar ended_;           // Drain: live_ is 0
  RequestQueue queue_ ABSL_GUARDED_BY(mutex_);
  Limits limits_ ABSL_GUARDED_BY(mutex_);
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t live_ ABSL_GUARDED_BY(mutex_) = 0;   // requests submitted and not yet ended
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
      clock_(clock),
      metrics_(MetricsOrNone(metrics)),
      limits_(LimitsOf(model_->spec())) {
  for (size_t i = 0; i < sessions_.size(); ++i) threads_.emplace_back([this, i] { RunExecutor(static_cast<int>(i)); });
  threads_.emplace_back([this] { RunExpiry(); });
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
    SWIZZLE_RETURN_IF_ERROR(Refusal());
    ticket = pending->ticket = ++last_ticket_;
    ++live_;
    executor_asleep = idle_ > 0 && watching_ == 0;
    if (idle_ + watching_ == 0) ArmExpiry(pending->request.deadline);
    metrics_.AddInflight(1);
    queue_.Push(std::move(pending));
    arrivals_.fetch_add(1, std::memory_order_relaxed);
    QueueChanged();
  }
  if (executor_asleep) work_.Signal();  // outside the lock, so that the executor does not wake only to wait for it
  return ticket;
}

Status BatcherImpl::Refusal() const {
  const ModelSpec& spec = model_->spec();
  if (draining_) {
    metrics_.RecordRejected(Rejection::kDraining);
    return MakeError(StatusCode::kUnavailable, "model '", spec.name, "' is shutting down");
  }
  if (static_cast<int64_t>(queue_.size()) >= spec.max_queue_size) {
    metrics_.RecordRejected(Rejection::kQueueFull);
    return MakeError(StatusCode::kResourceExhausted, "the queue of model '", spec.name, "' is full (", queue_.size(),
                     " requests); try again later");
  }
  return absl::OkStatus();
}

void BatcherImpl::Cancel(Ticket ticket) {
  PendingList cancelled;
  {
    MutexLock lock(mutex_);
    std::unique_ptr<Pending> pending = queue_.TakeTicket(ticket);
    if (pending == nullptr) return;
    QueueChanged();
    cancelled.push_back(std::move(pending));
  }
  Fail(std::move(cancelled), absl::CancelledError("the request was cancelled while it was queued"),
       Rejection::kCancelled);
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
    Execute(batch, executor);
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
    if (!expired.empty()) Fail(std::move(expired), DeadlinePassed(), Rejection::kTimeout);
  }
  return true;
}

// Fills `batch`, `expired` or both, as soon as there is something for either; false once the batcher is closed.
bool BatcherImpl::AwaitWork(Batch& batch, PendingList& expired) {
  bool watch = model_->spec().instance_kind == InstanceKind::kGpu;
  while (!closed_) {
    const Instant now = clock_.Now();
    const Decision decision = Decide(queue_.summaries(), now, limits_);
    queue_.Take(decision.expired, expired);
    if (decision.take > 0) {
      queue_.TakeFront(decision.take, batch.requests);
      batch.start = now;
      batch.reason = decision.reason;
      limits_.hold_until = 0;
    }
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
    clock_.WaitUntil(mutex_, work_, decision.wake);
    --idle_;
  }
  return false;
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

void BatcherImpl::Execute(Batch& batch, int executor) {
  batch.MakeItems();
  BatchTimes times;
  const Status status = sessions_[static_cast<size_t>(executor)]->Run(batch.items, times);
  metrics_.AddBusy(executor, clock_.Now() - batch.start);
  if (!status.ok()) {
    for (auto& pending : batch.requests) End(std::move(pending), status);
    return;
  }
  RecordSuccess(batch, times);
  for (size_t i = 0; i < batch.requests.size(); ++i) {
    Result& result = batch.results[i];
    result.queue = batch.start - batch.requests[i]->arrival;
    result.input = times.input;
    result.compute = times.compute;
    result.output = times.output;
    result.batch_rows = batch.rows;
    End(std::move(batch.requests[i]), std::move(result));
  }
}

void BatcherImpl::RecordSuccess(const Batch& batch, const BatchTimes& times) {
  int64_t positions = 0;
  for (const auto& pending : batch.requests) {
    positions += Positions(pending->request);
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
      const Expiry expiry = FindExpired(queue_.summaries(), clock_.Now());
      queue_.Take(expiry.expired, expired);
      if (expired.empty()) {
        expiry_wake_ = idle_ > 0 ? Instant::InfiniteFuture() : expiry.next_deadline;
        clock_.WaitUntil(mutex_, expiry_changed_, expiry_wake_);
        continue;
      }
      QueueChanged();
    }
    Fail(std::move(expired), DeadlinePassed(), Rejection::kTimeout);
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
  const size_t count = requests.size();
  for (auto& pending : requests) {
    metrics_.RecordRejected(why);
    End(std::move(pending), status);
  }
  Forget(count);
}

void BatcherImpl::End(std::unique_ptr<Pending> pending, StatusOr<Result> result) {
  metrics_.AddInflight(-1);
  std::move(pending->done)(std::move(result));
}

// After `ended` requests have ended, done included.
void BatcherImpl::Forget(size_t ended) {
  MutexLock lock(mutex_);
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
  return std::make_unique<BatcherImpl>(std::move(model), std::move(sessions), clock, metrics);
}

}  // namespace swizzle
