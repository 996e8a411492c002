#include "server/model/compute_turns.h"

#include <algorithm>

namespace swizzle {
namespace {

// A model alone counts what it has used this often.
constexpr absl::Duration kLongUncounted = absl::Milliseconds(1);

}  // namespace

void ComputeTurns::Begin(Share& share, int threads) {
  const MutexLock lock(mutex_);
  if (share.executors++ == 0) {
    if (const Share* least = Least()) {
      share.used = std::clamp(share.used, least->used - kMostApart, least->used + kMostApart);
    }
    active_.push_back(&share);
    if (holder_ == nullptr || share.used + kTurn < holder_->used) holder_ = &share;
  }
  share.threads += threads;
  Changed();
}

void ComputeTurns::End(Share& share, int threads, Instant& since) {
  const MutexLock lock(mutex_);
  Charge(share, threads, since);
  share.threads -= threads;
  if (--share.executors == 0) {
    std::erase(active_, &share);
    if (holder_ == &share) holder_ = Least();
  }
  Changed();
}

bool ComputeTurns::MustWait(Share& share, int threads, Instant& since) {
  if (!contended_.load(std::memory_order_relaxed) && clock_.Now() - since < kLongUncounted) return false;
  const MutexLock lock(mutex_);
  Charge(share, threads, since);
  if (holder_ == &share) {
    Share* const least = Least();
    if (least->used + kTurn < share.used) {
      holder_ = least;
      changed_.SignalAll();
    }
  }
  return contended_.load(std::memory_order_relaxed) && !MayRun(share, threads);
}

void ComputeTurns::Wait(const Share& share, int threads, Instant& since) {
  const MutexLock lock(mutex_);
  while (!MayRun(share, threads)) changed_.Wait(mutex_);
  since = clock_.Now();
}

void ComputeTurns::Charge(Share& share, int threads, Instant& since) {
  const Instant now = clock_.Now();
  share.used += (now - since) * threads / processors_;
  since = now;
}

// Beside the model whose turn it is where both have processors.
bool ComputeTurns::MayRun(const Share& share, int threads) const {
  return holder_ == &share || holder_->threads + threads <= processors_;
}

ComputeTurns::Share* ComputeTurns::Least() const {
  const auto least = std::ranges::min_element(active_, {}, [](const Share* share) { return share->used; });
  return least == active_.end() ? nullptr : *least;
}

void ComputeTurns::Changed() {
  int threads = 0;
  for (const Share* share : active_) threads += share->threads;
  computing_.store(!active_.empty(), std::memory_order_relaxed);
  contended_.store(active_.size() > 1 && threads > processors_, std::memory_order_relaxed);
  changed_.SignalAll();
}

}  // namespace swizzle
