#include "server/engine/run_slots.h"

#include <algorithm>
#include <utility>

#include "server/threading/clock.h"

namespace swizzle::engine {

StatusOr<std::unique_ptr<RunSlots>> RunSlots::New(swizzle::Model& model, int count, bool survives_forks) {
  std::unique_ptr<RunSlots> slots(new RunSlots(model, count, survives_forks));
  {
    const MutexLock lock(slots->mutex_);
    SWIZZLE_RETURN_IF_ERROR(slots->Fill());
  }
  Process::Get().Enter(*slots);
  return slots;
}

RunSlots::~RunSlots() { Process::Get().Leave(*this); }

Status RunSlots::Fill() {
  for (int i = 0; i < count_; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, model_.NewSession(Clock::Real()));
    free_.push_back(session.get());
    sessions_.push_back(std::move(session));
  }
  std::ranges::reverse(free_);
  state_ = State::kUsable;
  return absl::OkStatus();
}

Status RunSlots::CheckUsable() const {
  if (state_ != State::kLost) return absl::OkStatus();
  return MakeError(
      StatusCode::kFailedPrecondition,
      "the model was opened before a fork, and runs on a GPU or was in use meanwhile; open it again in this "
      "process");
}

Status RunSlots::Usable() const {
  const MutexLock lock(mutex_);
  return CheckUsable();
}

StatusOr<Session*> RunSlots::Take() {
  const MutexLock lock(mutex_);
  SWIZZLE_RETURN_IF_ERROR(CheckUsable());
  if (state_ == State::kForked) SWIZZLE_RETURN_IF_ERROR(Fill());
  const bool may_overtake = waiters_.empty() || waiters_.front()->overtaken < kMostOvertaken;
  if (free_.empty() || !may_overtake || ended_) return Wait();
  if (!waiters_.empty()) ++waiters_.front()->overtaken;
  return TakeFree();
}

Session* RunSlots::TakeFree() {
  Session* const session = free_.back();
  free_.pop_back();
  ++taken_;
  return session;
}

StatusOr<Session*> RunSlots::Wait() {
  Waiter waiter;
  waiters_.push_back(&waiter);
  while (waiter.session == nullptr && !ended_) {
    if (!free_.empty() && waiters_.front() == &waiter) {
      waiters_.pop_front();
      TellNext();
      return TakeFree();
    }
    waiter.turn.Wait(mutex_);
  }
  if (waiter.session != nullptr) return waiter.session;
  waiters_.remove(&waiter);
  if (taken_ == 0 && waiters_.empty()) idle_.SignalAll();
  return absl::CancelledError("the model is being closed");
}

// There may be several free, for several who wait.
void RunSlots::TellNext() {
  if (!waiters_.empty()) waiters_.front()->turn.Signal();
}

void RunSlots::GiveBack(Session* session) {
  const MutexLock lock(mutex_);
  if (!ended_ && !waiters_.empty() && waiters_.front()->overtaken >= kMostOvertaken) {
    waiters_.front()->session = session;
    waiters_.front()->turn.Signal();
    waiters_.pop_front();
    return;
  }
  --taken_;
  free_.push_back(session);
  TellNext();
  if (ended_ && taken_ == 0 && waiters_.empty()) idle_.SignalAll();
}

void RunSlots::End() {
  const MutexLock lock(mutex_);
  ended_ = true;
  if (inherited_) return;  // who was here then is not in this process
  for (Waiter* const waiter : waiters_) waiter->turn.Signal();
  while (taken_ > 0 || !waiters_.empty()) idle_.Wait(mutex_);
}

void RunSlots::NoteChanging(bool changing) {
  const MutexLock lock(mutex_);
  changing_ = changing;
}

bool RunSlots::inherited() const {
  const MutexLock lock(mutex_);
  return inherited_;
}

void RunSlots::LockForFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }

void RunSlots::UnlockAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

// Sessions that the parent made have threads that are not here; to end one would be to wait for these.
void RunSlots::NoteForked() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const bool at_rest = taken_ == 0 && waiters_.empty() && !changing_ && survives_forks_;
  inherited_ = true;
  if (state_ != State::kLost) state_ = at_rest ? State::kForked : State::kLost;
  static_cast<void>(new auto(std::move(sessions_)));
  sessions_.clear();
  free_.clear();
}

}  // namespace swizzle::engine
