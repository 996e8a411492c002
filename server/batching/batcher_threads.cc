#include <algorithm>
#include <utility>

#include "server/batching/batch_samples.h"
#include "server/batching/batcher_impl.h"
#include "server/telemetry/containment.h"

namespace swizzle {
namespace {

// For so long an executor of a GPU watches the queue before it sleeps: to wake a thread takes up to 50 us on a
// processor that was idle meanwhile, a third of what a small model computes. On the CPU watching would cost other
// threads more.
constexpr absl::Duration kWatchTime = absl::Milliseconds(1);

// A batch expected to take no longer may run on the thread that queued its request, which runs batches for so long at
// most. One that took longer than kHeldUp, and than several times what was expected, was probably held up: it counts as
// this long. The first of all counts as it is, for a full batch that is long makes no single request short.
constexpr absl::Duration kShort = absl::Microseconds(50), kMostBorrowed = absl::Microseconds(100);
constexpr absl::Duration kHeldUp = absl::Microseconds(200);
constexpr int kTimesExpected = 4;

// After it what failed for want of memory is tried again.
constexpr absl::Duration kMemoryPause = absl::Milliseconds(10);

}  // namespace

void BatcherImpl::RunExecutor(Shift& shift) {
  while (NextBatch(shift)) {
    RunBatch(shift);
    if (threads_->crowded() && MakeRoom(shift)) return;
  }
}

// Gives the thread to an executor that waits for one, and waits behind it. False where this one has nothing to wait
// for.
bool BatcherImpl::MakeRoom(Shift& shift) {
  const MutexLock lock(mutex_);
  if (queue_.size() == 0) return false;
  ArmExpiry(queue_.order().NextDeadline());
  threads_->Add(shift);
  return true;
}

void BatcherImpl::RunBatch(Shift& shift) {
  Batch& batch = shift.batch_;
  const size_t count = batch.requests.size();
  const Status status = Execute(batch, shift.executor_);
  if (status.ok() || count == 1) {
    EndAll(batch, status);
  } else {
    ExecuteEachAlone(shift, status);
  }
  {
    MutexLock lock(mutex_);
    running_ -= batch.work;
    if (status.ok() && batch.times.first_of_shape) {
      service_time_.RecordFirst(batch.full(), batch.work, bounds_.batch_work, batch.busy);
    } else if (status.ok()) {
      service_time_.Record(batch.full(), batch.work, batch.busy);
      const absl::Duration expected = short_time_.Of(batch.work, bounds_.batch_work);
      const absl::Duration most =
          short_time_.known() ? std::max(kHeldUp, kTimesExpected * expected) : absl::InfiniteDuration();
      short_time_.Record(batch.full(), batch.work, std::min(batch.busy, most));
    }
    std::erase(batch.requests, nullptr);
    const size_t ended = count - batch.requests.size();
    ReturnRests(batch);
    Forget(ended);
  }
  for (std::unique_ptr<Pending>& pending : batch.requests) {
    if (pending->cancelled) {
      FailOne(std::move(pending), cancelled_, Rejection::kCancelled);
    } else {
      FailOne(std::move(pending), no_memory_, Rejection::kQueueFull);
    }
  }
  if (batch.requests.empty()) return;
  const MutexLock lock(mutex_);
  Forget(batch.requests.size());
}

// Requests of which there is more to run go to the queue. In the batch stays what was cancelled meanwhile, or finds no
// memory there.
void BatcherImpl::ReturnRests(Batch& batch) {
  if (batch.requests.empty()) return;
  for (std::unique_ptr<Pending>& pending : batch.requests) {
    std::erase(in_parts_, pending.get());
    try {
      if (!pending->cancelled) queue_.Return(pending);
    } catch (...) {
      CaughtStatus("go on with a request").IgnoreError();
    }
    if (pending != nullptr) queue_.Lose(*pending);
  }
  std::erase(batch.requests, nullptr);
  QueueChanged();
}

// Waits for a batch; false once the executor has given its thread back.
bool BatcherImpl::NextBatch(Shift& shift) {
  shift.batch_.requests.clear();
  while (shift.batch_.requests.empty()) {
    PendingList expired;
    {
      MutexLock lock(mutex_);
      if (!AwaitWork(shift, expired)) return false;
    }
    if (!expired.empty()) Fail(std::move(expired), late_, Rejection::kTimeout);
  }
  return true;
}

// Fills the batch, `expired` or both, as soon as there is something for either. False once the thread is given back,
// since nothing is queued: the shift is then anybody's.
bool BatcherImpl::AwaitWork(Shift& shift, PendingList& expired) {
  bool watch = model_->spec().instance_kind == InstanceKind::kGpu;
  while (true) {
    const Instant wake = TakeWork(shift.batch_, expired);
    if (!expired.empty() || !shift.batch_.requests.empty()) {
      QueueChanged();
      HandOverRest();
      return true;
    }
    if (queue_.size() > 0) {
      Sleep(wake);
    } else if (std::exchange(watch, false)) {
      WatchQueue();
    } else {
      GiveBack(shift);
      return false;
    }
  }
}

// Until `wake`, or there may be work.
void BatcherImpl::Sleep(Instant wake) {
  ++idle_;
  clock_.WaitUntil(mutex_, work_, wake);
  --idle_;
}

// Null if every executor has a thread, or waits for one.
BatcherImpl::Shift* BatcherImpl::TakeFree() {
  if (free_.empty()) return nullptr;
  Shift* const shift = free_.back();
  free_.pop_back();
  return shift;
}

void BatcherImpl::GiveBack(Shift& shift) {
  free_.push_back(&shift);
  if (draining_) ended_.SignalAll();
}

// Gives an executor a thread, for what is queued. Where it has to wait for one, somebody has to see to deadlines.
void BatcherImpl::Summon(Shift& shift) {
  if (threads_->Add(shift)) return;
  const MutexLock lock(mutex_);
  ArmExpiry(queue_.order().NextDeadline());
}

// Whether the thread that has just queued a request may run it: to wake the executor would take longer.
bool BatcherImpl::MayBorrow() const {
  if (shifts_.size() != 1 || free_.empty() || queue_.size() != 1) return false;
  if (limits_.max_delay > absl::ZeroDuration() || !short_time_.known()) return false;
  return short_time_.Of(queue_.load().work, bounds_.batch_work) <= kShort && RunsAtOnce();
}

// Any thread may run the session, and waits for nothing, whichever of the queued requests it takes.
bool BatcherImpl::RunsAtOnce() const {
  return std::ranges::all_of(queue_.order().Classes(),
                             [&](uint64_t batch_class) { return sessions_[0]->RunsAtOnce(batch_class); });
}

// In the executor's place: what is queued, and what others queue meanwhile. Not for long: the thread, one of gRPC's, is
// wanted elsewhere, and sends the answer to its own request when it returns. What nobody contained ends the server, as
// on an executor: past Submit its call would be answered twice, and the session never given back.
void BatcherImpl::RunBorrowed(Shift& shift) noexcept {
  const Instant end = clock_.Now() + kMostBorrowed;
  for (PendingList expired; TakeBorrowed(shift, expired, end);) {
    if (!expired.empty()) Fail(std::exchange(expired, {}), late_, Rejection::kTimeout);
    if (!shift.batch_.requests.empty()) RunBatch(shift);
  }
}

// As AwaitWork does; false where there is nothing to take, or no time for it. The executor's own thread then sees to
// what is queued.
bool BatcherImpl::TakeBorrowed(Shift& shift, PendingList& expired, Instant end) {
  {
    const MutexLock lock(mutex_);
    shift.batch_.requests.clear();
    if (clock_.Now() + short_time_.Of(queue_.load().work, bounds_.batch_work) <= end && RunsAtOnce()) {
      TakeWork(shift.batch_, expired);
      if (!expired.empty() || !shift.batch_.requests.empty()) {
        QueueChanged();
        return true;
      }
    }
    if (queue_.size() == 0) {
      GiveBack(shift);
      return false;
    }
  }
  Summon(shift);
  return false;
}

// Moves what the policy says to `batch` and `expired`; returns when to ask it again.
Instant BatcherImpl::TakeWork(Batch& batch, PendingList& expired) {
  const Instant now = clock_.Now();
  try {
    queue_.PassTime(now, expired);
    Decision decision = Decide(queue_.order(), now, limits_, passed_);
    if (decision.take.empty()) return decision.wake;
    in_parts_.reserve(in_parts_.size() + decision.take.size());
    queue_.Take(decision.take, decision.rows, batch.requests);
    passed_ = std::move(decision.passed);
    batch.work = 0;
    for (const std::unique_ptr<Pending>& pending : batch.requests) {
      batch.work += pending->work_taken;
      if (pending->rows_left() > 0) in_parts_.push_back(pending.get());
    }
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
  batch.times = {};
  Status status = Contain("run the batch", [&]() -> Status {
    SWIZZLE_RETURN_IF_ERROR(batch.MakeItems(model_->spec()));
    SWIZZLE_RETURN_IF_ERROR(sessions_[static_cast<size_t>(executor)]->Run(batch.items, batch.times));
    RecordSuccess(batch);
    TellSamples(batch);
    return absl::OkStatus();
  });
  batch.busy = clock_.Now() - batch.start;
  metrics_.AddBusy(executor, batch.busy);
  return status;
}

// After a batch has failed: what is wrong with one of its requests, or too much of all together, fails no other. Costs
// a failing model one run more for each request. What has had answers cannot have them again, and ends as all together.
void BatcherImpl::ExecuteEachAlone(Shift& shift, const Status& together) {
  Batch& alone = shift.alone_;
  for (std::unique_ptr<Pending>& pending : shift.batch_.requests) {
    alone.start = clock_.Now();
    alone.reason = BatchReason::kRetry;
    const bool late = pending->request.deadline <= alone.start;
    const bool begun = pending->request.answers != nullptr && pending->request.answers->begun();
    alone.requests[0] = std::move(pending);
    EndAll(alone, begun ? together : late ? late_ : Execute(alone, shift.executor_));
    pending = std::move(alone.requests[0]);
  }
}

// With the results, or with what ended the batch. Requests of which there is more to run stay in the batch.
void BatcherImpl::EndAll(Batch& batch, const Status& status) {
  for (size_t i = 0; i < batch.requests.size(); ++i) {
    std::unique_ptr<Pending>& pending = batch.requests[i];
    Status its = status;
    if (its.ok()) its = Contain("put an answer together", [&] { return batch.FinishResult(i, model_->spec()); });
    if (pending->rows_left() > 0) {
      if (its.ok()) continue;
      const MutexLock lock(mutex_);
      std::erase(in_parts_, pending.get());
      queue_.Lose(*pending);
    }
    if (its.ok()) {
      End(std::move(pending), std::move(batch.results[i]));
    } else {
      End(std::move(pending), its);
    }
  }
}

void BatcherImpl::RecordSuccess(const Batch& batch) {
  int64_t positions = 0;
  int64_t begun = 0;  // of one that runs in parts the first alone
  for (const auto& pending : batch.requests) {
    positions += PositionsOf(*pending);
    if (pending->rows_before > 0) continue;
    metrics_.RecordQueued(batch.start - pending->arrival);
    ++begun;
  }
  metrics_.RecordBatch(
      {.requests = begun, .rows = batch.rows, .positions = positions, .reason = batch.reason, .times = batch.times});
}

// Ends requests whose deadline has come while every executor is busy.
void BatcherImpl::EndLate() {
  while (true) {
    PendingList expired;
    {
      const MutexLock lock(mutex_);
      const Instant next = TakeExpired(expired);
      if (expired.empty()) {
        expiry_wake_ = idle_ > 0 ? Instant::InfiniteFuture() : next;
        threads_->Set(expiry_, expiry_wake_);
        return;
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
    queue_.PassTime(now, expired);
    return queue_.order().NextDeadline();
  } catch (...) {
    CaughtStatus("end what is late").IgnoreError();
    return now + kMemoryPause;
  }
}

// This executor is about to be busy: somebody else has to see to what is still queued.
void BatcherImpl::HandOverRest() {
  if (queue_.size() == 0) return;
  if (idle_ > 0) return work_.Signal();
  Shift* const other = TakeFree();
  if (other != nullptr && threads_->Add(*other)) return;
  ArmExpiry(queue_.order().NextDeadline());
}

}  // namespace swizzle
