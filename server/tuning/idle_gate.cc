#include "server/tuning/idle_gate.h"

#include <algorithm>
#include <utility>

namespace swizzle {

IdleGate::IdleGate(const Activity& activity, Clock& clock, const IdleRules& rules)
    : activity_(activity),
      clock_(clock),
      rules_(rules),
      start_(clock.Now()),
      seen_(activity.begun()),
      last_request_(start_ - rules.recent),
      slice_start_(start_) {}

void IdleGate::Look(Instant now) {
  const int64_t begun = activity_.begun();
  if (activity_.inflight() > 0 || begun != std::exchange(seen_, begun)) last_request_ = now;
}

bool IdleGate::MustWait() {
  const Instant now = clock_.Now();
  Look(now);
  if (closed() || now < last_request_ + rules_.quiet) return true;
  return IsRecent(now) && now - slice_start_ >= rules_.slice;
}

Status IdleGate::Await() {
  constexpr int kMostSlices = 4;  // that a long run is taken for
  const Instant begin = clock_.Now();
  const absl::Duration used = std::min(begin - slice_start_, rules_.slice * kMostSlices);
  const Instant rested = begin + rules_.rest * absl::FDivDuration(used, rules_.slice);
  Instant now = begin;
  while (!closed()) {
    Look(now);
    const Instant quiet = last_request_ + rules_.quiet;
    const Instant opens = IsRecent(now) ? std::max(quiet, rested) : quiet;
    if (opens <= now) break;
    MutexLock lock(mutex_);
    if (!closed()) clock_.WaitUntil(mutex_, stop_, std::min(opens, now + rules_.look));
    now = clock_.Now();
  }
  waited_ += now - begin;
  slice_start_ = now;
  if (closed()) return MakeError(StatusCode::kCancelled, "tuning was stopped");
  return absl::OkStatus();
}

void IdleGate::Skip() {
  MutexLock lock(mutex_);
  skipped_ = true;
  stop_.SignalAll();
}

void IdleGate::Stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
  stop_.SignalAll();
}

}  // namespace swizzle
