#include "client/retry_policy.h"

#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

using absl::Milliseconds;
using absl::StatusCode;

constexpr RetryOptions kOptions{
    .max_attempts = 4, .initial_backoff = Milliseconds(20), .max_backoff = Milliseconds(50), .budget = 100};

FailedAttempt Failed(StatusCode code, int attempts = 1, absl::Duration left = absl::Seconds(10)) {
  return {.code = code, .attempts = attempts, .left = left};
}

TEST(RetryPolicyTest, WaitsARandomTimeWhoseBoundDoubles) {
  RetryPolicy policy(kOptions);
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 1), 0.5), Milliseconds(10));
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 2), 0.5), Milliseconds(20));
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 3), 0.5), Milliseconds(25));
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 1), 0), absl::ZeroDuration());
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 4), 0.5), std::nullopt);
}

TEST(RetryPolicyTest, KnowsWhichCodes) {
  RetryPolicy policy(kOptions);
  for (const StatusCode code :
       {StatusCode::kInvalidArgument, StatusCode::kNotFound, StatusCode::kInternal, StatusCode::kDeadlineExceeded,
        StatusCode::kCancelled, StatusCode::kResourceExhausted}) {
    EXPECT_EQ(policy.NextWait(Failed(code), 0), std::nullopt) << static_cast<int>(code);
  }
  RetryOptions asked = kOptions;
  asked.resource_exhausted = true;
  EXPECT_TRUE(RetryPolicy(asked).NextWait(Failed(StatusCode::kResourceExhausted), 0).has_value());
  FailedAttempt cut_off = Failed(StatusCode::kDeadlineExceeded);
  cut_off.was_cut_off = true;
  EXPECT_TRUE(policy.NextWait(cut_off, 0).has_value());
}

TEST(RetryPolicyTest, NeverPassesTheDeadline) {
  RetryPolicy policy(kOptions);
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 1, Milliseconds(10)), 0.5), std::nullopt);
  EXPECT_EQ(policy.NextWait(Failed(StatusCode::kUnavailable, 1, Milliseconds(-1)), 0), std::nullopt);
  EXPECT_TRUE(policy.NextWait(Failed(StatusCode::kUnavailable, 1, Milliseconds(11)), 0.5).has_value());
}

TEST(RetryPolicyTest, HeedsTheServer) {
  RetryPolicy policy(kOptions);
  FailedAttempt failed = Failed(StatusCode::kUnavailable);
  failed.pushback = Milliseconds(700);
  EXPECT_EQ(policy.NextWait(failed, 0.5), Milliseconds(700));
  failed.pushback = Milliseconds(-1);
  EXPECT_EQ(policy.NextWait(failed, 0.5), std::nullopt);
}

TEST(RetryPolicyTest, EndsWithItsBudget) {
  RetryOptions options = kOptions;
  options.budget = 2;
  RetryPolicy policy(options);
  const auto retries = [&] { return policy.NextWait(Failed(StatusCode::kUnavailable), 0).has_value(); };
  EXPECT_TRUE(retries());
  EXPECT_TRUE(retries());
  EXPECT_FALSE(retries());
  for (int i = 0; i < 9; ++i) policy.Succeeded();
  EXPECT_FALSE(retries());
  policy.Succeeded();
  EXPECT_TRUE(retries());
  EXPECT_FALSE(retries());
  for (int i = 0; i < 1000; ++i) policy.Succeeded();
  EXPECT_TRUE(retries());
  EXPECT_TRUE(retries());
  EXPECT_FALSE(retries());
}

TEST(CallAttemptsTest, GiveTheLastAttemptAllThatIsLeft) {
  RetryOptions options = kOptions;
  options.max_attempts = 2;
  options.attempt_timeout = absl::Seconds(1);
  RetryPolicy policy(options);
  CallAttempts attempts(policy, absl::Hours(1), true);
  EXPECT_EQ(attempts.Begin(), absl::Seconds(1));
  EXPECT_TRUE(attempts.WaitAfter(StatusCode::kDeadlineExceeded, std::nullopt).has_value());
  EXPECT_GT(attempts.Begin(), absl::Seconds(1));
  EXPECT_FALSE(attempts.WaitAfter(StatusCode::kDeadlineExceeded, std::nullopt).has_value());
  EXPECT_EQ(attempts.made(), 2);
}

TEST(CallAttemptsTest, AreOneForOrders) {
  RetryOptions options = kOptions;
  options.attempt_timeout = absl::Seconds(1);
  RetryPolicy policy(options);
  CallAttempts attempts(policy, absl::Hours(1), false);
  EXPECT_GT(attempts.Begin(), absl::Minutes(1));
  EXPECT_FALSE(attempts.WaitAfter(StatusCode::kUnavailable, std::nullopt).has_value());
}

}  // namespace
}  // namespace swizzle::client
