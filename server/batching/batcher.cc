#include "server/batching/batcher.h"

#include <algorithm>
#include <utility>

#include "server/batching/batcher_impl.h"
#include "server/telemetry/containment.h"

namespace swizzle {

BatcherImpl::BatcherImpl(std::shared_ptr<Model> model, std::vector<std::unique_ptr<Session>> sessions, Clock& clock,
                         ModelMetrics* metrics, std::shared_ptr<ExecutorThreads> threads)
    : model_(std::move(model)),
      sessions_(std::move(sessions)),
      bounds_(BoundsOf(model_->spec())),
      clock_(clock),
      metrics_(OrNone(metrics)),
      threads_(std::move(threads)),
      limits_(LimitsOf(model_->spec())),
      queue_(limits_) {
  const int executors = static_cast<int>(sessions_.size());
  for (int i = executors - 1; i >= 0; --i) free_.push_back(&shifts_.emplace_back(*this, i));
  threads_->Expect(executors);
  threads_->Register(expiry_);
}

BatcherImpl::~BatcherImpl() {
  Drain([] {});
  {
    MutexLock lock(mutex_);
    while (free_.size() < shifts_.size()) ended_.Wait(mutex_);
  }
  threads_->Unregister(expiry_);
  threads_->Expect(-static_cast<int>(shifts_.size()));
}

StatusOr<Ticket> BatcherImpl::Submit(Request request, Done done) {
  const ModelSpec& spec = model_->spec();
  SWIZZLE_CHECK(request.rows >= 1 && (spec.max_batch_size == 0 || request.rows <= spec.max_batch_size));
  SWIZZLE_CHECK(request.level >= 1 && request.level <= spec.priority_levels);
  auto pending = std::make_unique<Pending>();
  pending->arrival = clock_.Now();
  pending->request = std::move(request);
  pending->own_deadline = pending->request.deadline;
  const QueuePolicy& policy = spec.PolicyOf(pending->request.level);
  Instant& time_is_up = policy.delays_late ? pending->request.late_at : pending->request.deadline;
  time_is_up = std::min(time_is_up, pending->arrival + policy.default_timeout);
  pending->done = std::move(done);

  Ticket ticket;
  bool executor_asleep;
  Shift* shift = nullptr;  // is given a thread, or this one
  bool borrow;
  {
    MutexLock lock(mutex_);
    SWIZZLE_RETURN_IF_ERROR(Admit(SummaryOf(*pending)));
    const Instant deadline = pending->request.deadline;
    ticket = pending->ticket = ++last_ticket_;
    queue_.Push(pending);
    ++live_;
    borrow = MayBorrow();
    executor_asleep = idle_ > 0 && watching_ == 0;
    if (idle_ + watching_ == 0) shift = TakeFree();
    if (idle_ + watching_ == 0 && (shift == nullptr || borrow)) ArmExpiry(deadline);
    metrics_.AddInflight(1);
    arrivals_.fetch_add(1, std::memory_order_relaxed);
    QueueChanged();
  }
  if (executor_asleep) work_.Signal();  // outside the lock, so that the executor does not wake only to wait for it
  if (borrow) {
    RunBorrowed(*shift);
  } else if (shift != nullptr) {
    Summon(*shift);
  }
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
  const QueueLoad waiting = queue_.LoadUpTo(request.level);
  const auto takes = [this](int64_t work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return service_time_.Of(work, bounds_.batch_work) / bounds_.executors;
  };
  ExpectedWait expected;
  if (FillsARound(bounds_, waiting)) {  // to find it takes a look at all that waits
    expected = {.before = takes(queue_.WorkBefore(request) + running_), .all = takes(waiting.work + running_)};
  }
  std::optional<Refusal> refusal = RefuseLevel(bounds_, request.level, queue_.LoadAt(request.level));
  if (!refusal) {
    refusal = Refuse(bounds_, waiting, queue_.LoadOf(request.connection, request.level), request, expected,
                     request.deadline - request.arrival);
  }
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
    if (pending == nullptr) {
      const auto its = std::ranges::find(in_parts_, ticket, &Pending::ticket);
      if (its != in_parts_.end()) (*its)->cancelled = true;
      return;
    }
    QueueChanged();
  }
  FailOne(std::move(pending), cancelled_, Rejection::kCancelled);
  MutexLock lock(mutex_);
  Forget(1);
}

void BatcherImpl::Drain(absl::FunctionRef<void()> progress) {
  MutexLock lock(mutex_);
  draining_ = true;
  limits_.max_delay = absl::ZeroDuration();
  limits_.hold_until = 0;
  work_.SignalAll();
  while (live_ > 0) {
    ended_.Wait(mutex_);
    progress();
  }
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

void BatcherImpl::ArmExpiry(Instant deadline) {
  if (deadline >= expiry_wake_) return;
  expiry_wake_ = deadline;
  threads_->Set(expiry_, deadline);
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
  if (draining_) ended_.SignalAll();
}

StatusOr<Sessions> NewSessions(Model& model, Clock& clock) {
  SWIZZLE_CHECK(model.spec().executors() >= 1);
  return Contain("start the model's executors", [&]() -> StatusOr<Sessions> {
    Sessions sessions;
    for (int i = 0; i < model.spec().executors(); ++i) {
      SWIZZLE_ASSIGN_OR_RETURN(sessions.emplace_back(), model.NewSession(clock));
    }
    return sessions;
  });
}

StatusOr<std::unique_ptr<Batcher>> NewBatcher(std::shared_ptr<Model> model, Sessions sessions, Clock& clock,
                                              ModelMetrics* metrics, std::shared_ptr<ExecutorThreads> threads) {
  return Contain("start the model's executors", [&]() -> StatusOr<std::unique_ptr<Batcher>> {
    if (threads == nullptr) threads = std::make_shared<ExecutorThreads>(clock);
    return std::make_unique<BatcherImpl>(std::move(model), std::move(sessions), clock, metrics, std::move(threads));
  });
}

StatusOr<std::unique_ptr<Batcher>> NewBatcher(std::shared_ptr<Model> model, Clock& clock, ModelMetrics* metrics,
                                              std::shared_ptr<ExecutorThreads> threads) {
  SWIZZLE_ASSIGN_OR_RETURN(Sessions sessions, NewSessions(*model, clock));
  return NewBatcher(std::move(model), std::move(sessions), clock, metrics, std::move(threads));
}

}  // namespace swizzle
