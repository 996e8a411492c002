// Whether a failed call is tried again, and after what time. RetryPolicy is a client's, and thread-safe; CallAttempts
// is one call's, and thread-compatible. Neither waits, nor knows of gRPC's calls.
//
// gRPC could retry by itself, told by a service config. It does not, because it then tells nobody how often it tried,
// stops at 5 attempts, keeps no request above 256 KiB for it unless told to, answers DEADLINE_EXCEEDED where the reason
// for the retries was another, and has no timeout for an attempt. What no server has seen (a connection that was
// closing) it sends again all the same, which counts as no attempt.
#ifndef SWIZZLE_CLIENT_RETRY_POLICY_H_
#define SWIZZLE_CLIENT_RETRY_POLICY_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client.h"

namespace swizzle::client {

// How an attempt failed.
struct FailedAttempt {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  int attempts = 1;          // made, with this one
  absl::Duration left;       // until the call's deadline
  bool was_cut_off = false;  // by RetryOptions::attempt_timeout
  // What the server asks to wait ("grpc-retry-pushback-ms"); negative: it wants no other attempt.
  std::optional<absl::Duration> pushback = {};
};

class RetryPolicy {
 public:
  explicit RetryPolicy(const RetryOptions& options);

  // What to wait before the next attempt, whose `draw` in [0, 1) it takes; none where the call is over. Takes from the
  // budget.
  std::optional<absl::Duration> NextWait(const FailedAttempt& failed, double draw);
  // Gives back to the budget.
  void Succeeded();

  const RetryOptions& options() const { return options_; }

 private:
  bool TakeFromBudget();

  const RetryOptions options_;
  std::atomic<int64_t> tenths_;  // of retries that are left
};

// The attempts of one call.
class CallAttempts {
 public:
  // `repeats`: whether it may be tried again.
  CallAttempts(RetryPolicy& policy, absl::Duration timeout, bool repeats);

  // Begins an attempt; returns what it may take.
  absl::Duration Begin();
  // As RetryPolicy::NextWait, for the attempt that failed now.
  std::optional<absl::Duration> WaitAfter(absl::StatusCode code, std::optional<absl::Duration> pushback);
  // The attempt that was begun last was none.
  void Uncount() { --made_; }
  void Succeeded() { policy_.Succeeded(); }

  int made() const { return made_; }

 private:
  RetryPolicy& policy_;
  const bool repeats_;
  const absl::Duration timeout_;
  const int64_t start_ns_;  // by the monotonic clock
  absl::Duration given_;    // to the latest attempt
  absl::Duration left_;     // when it began
  int made_ = 0;
};

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_RETRY_POLICY_H_
