#include "client/retry_policy.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace swizzle::client {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Draw() {
  thread_local std::minstd_rand generator{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(generator);
}

}  // namespace

RetryPolicy::RetryPolicy(const RetryOptions& options) : options_(options), tenths_(int64_t{10} * options.budget) {}

std::optional<absl::Duration> RetryPolicy::NextWait(const FailedAttempt& failed, double draw) {
  const bool retryable = failed.code == absl::StatusCode::kUnavailable || failed.was_cut_off ||
                         (failed.code == absl::StatusCode::kResourceExhausted && options_.resource_exhausted);
  if (!retryable || failed.attempts >= options_.max_attempts) return std::nullopt;
  absl::Duration wait;
  if (failed.pushback.has_value()) {
    if (*failed.pushback < absl::ZeroDuration()) return std::nullopt;
    wait = *failed.pushback;
  } else {
    absl::Duration bound = options_.initial_backoff;
    for (int i = 1; i < failed.attempts && bound < options_.max_backoff; ++i) bound *= 2;
    wait = std::min(bound, options_.max_backoff) * draw;
  }
  if (wait >= failed.left || !TakeFromBudget()) return std::nullopt;
  return wait;
}

void RetryPolicy::Succeeded() {
  if (options_.max_attempts <= 1) return;
  const int64_t most = int64_t{10} * options_.budget;
  int64_t tenths = tenths_.load(std::memory_order_relaxed);
  while (tenths < most && !tenths_.compare_exchange_weak(tenths, tenths + 1, std::memory_order_relaxed)) {
  }
}

bool RetryPolicy::TakeFromBudget() {
  int64_t tenths = tenths_.load(std::memory_order_relaxed);
  while (tenths >= 10) {
    if (tenths_.compare_exchange_weak(tenths, tenths - 10, std::memory_order_relaxed)) return true;
  }
  return false;
}

CallAttempts::CallAttempts(RetryPolicy& policy, absl::Duration timeout, bool repeats)
    : policy_(policy), repeats_(repeats), timeout_(timeout), start_ns_(NowNs()) {}

absl::Duration CallAttempts::Begin() {
  const RetryOptions& options = policy_.options();
  ++made_;
  left_ = timeout_ - absl::Nanoseconds(NowNs() - start_ns_);
  const bool cuts_off = repeats_ && options.attempt_timeout > absl::ZeroDuration() && made_ < options.max_attempts;
  given_ = cuts_off ? std::min(left_, options.attempt_timeout) : left_;
  return given_;
}

std::optional<absl::Duration> CallAttempts::WaitAfter(absl::StatusCode code, std::optional<absl::Duration> pushback) {
  if (!repeats_) return std::nullopt;
  const FailedAttempt failed{.code = code,
                             .attempts = made_,
                             .left = timeout_ - absl::Nanoseconds(NowNs() - start_ns_),
                             .was_cut_off = code == absl::StatusCode::kDeadlineExceeded && given_ < left_,
                             .pushback = pushback};
  return policy_.NextWait(failed, Draw());
}

}  // namespace swizzle::client
