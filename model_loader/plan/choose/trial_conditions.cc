#include "model_loader/plan/choose/trial_conditions.h"

namespace swizzle {

void TrialConditions::BeforeThreads() {
  if (make_watch_ != nullptr) threads_before_ = ThreadIds();
}

void TrialConditions::AfterThreads() {
  if (make_watch_ != nullptr) watch_ = make_watch_(threads_before_);
}

Status TrialConditions::Begin() {
  if (gate_.MustWait()) SWIZZLE_RETURN_IF_ERROR(gate_.Await());
  others_ = gate_.disturbances();
  start_ = gate_.Spent();
  times_work_ = watch_ != nullptr && disturbed_ > 0;
  if (watch_ != nullptr) before_ = watch_->ReadThreads();
  return absl::OkStatus();
}

void TrialConditions::End() {
  const absl::Duration wall = gate_.Spent() - start_;
  const bool by_machine = watch_ != nullptr && !DisturbedThreads(before_, watch_->ReadThreads(), wall).empty();
  ++runs_;
  disturbed_ += by_machine || gate_.disturbances() != others_;
}

void TrialConditions::StartWork() {
  if (times_work_) watch_->StartWork();
}

std::optional<absl::Duration> TrialConditions::StopWork() { return times_work_ ? watch_->StopWork() : std::nullopt; }

bool TrialConditions::IsSuspicious() const {
  constexpr int kMostOf = 4;  // a quarter of the runs
  return disturbed_ * kMostOf > runs_;
}

bool TrialConditions::TakeSuspicion() {
  const bool suspect = IsSuspicious();
  runs_ = disturbed_ = 0;
  suspect_ += suspect;
  return suspect;
}

}  // namespace swizzle
