#include "server/tuning/idle_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

// Stands still until it is moved, and leaps to the end of every wait.
class LeapingClock final : public Clock {
 public:
  Instant Now() override { return now_; }
  absl::Time WallNow() override { return absl::UnixEpoch(); }
  void WaitUntil(Mutex&, CondVar&, Instant deadline) override { now_ = std::max(now_, deadline); }
  void Advance(absl::Duration by) { now_ = now_ + by; }

 private:
  Instant now_ = Instant() + absl::Seconds(1'000'000);
};

class IdleGateTest : public ::testing::Test {
 protected:
  // How long an Await lasts.
  absl::Duration AwaitOpen() {
    const Instant start = clock_.Now();
    EXPECT_TRUE(gate_.Await().ok());
    return clock_.Now() - start;
  }
  // A request that is there and gone.
  void Request() {
    activity_.Add(1);
    activity_.Add(-1);
  }

  LeapingClock clock_;
  Activity activity_;
  const IdleRules rules_ = {};
  IdleGate gate_{activity_, clock_};
};

TEST_F(IdleGateTest, IsOpenWhereNobodyAsks) {
  EXPECT_FALSE(gate_.MustWait());
  clock_.Advance(absl::Hours(1));
  EXPECT_FALSE(gate_.MustWait());
  EXPECT_EQ(gate_.Spent(), absl::Hours(1));
}

TEST_F(IdleGateTest, IsShutWhileRequestsRunAndAWhileAfter) {
  activity_.Add(1);
  EXPECT_TRUE(gate_.MustWait());
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(gate_.MustWait());
  activity_.Add(-1);
  clock_.Advance(rules_.quiet / 2);
  EXPECT_TRUE(gate_.MustWait());
}

TEST_F(IdleGateTest, WaitsAreNotSpent) {
  clock_.Advance(absl::Milliseconds(2));
  Request();
  EXPECT_GE(AwaitOpen(), rules_.quiet);
  EXPECT_EQ(gate_.Spent(), absl::Milliseconds(2));
  EXPECT_FALSE(gate_.MustWait());
}

TEST_F(IdleGateTest, BesideTrafficMeasuresATenthOfTheTime) {
  Request();
  AwaitOpen();
  clock_.Advance(rules_.slice / 2);
  EXPECT_FALSE(gate_.MustWait());
  clock_.Advance(rules_.slice / 2);
  EXPECT_TRUE(gate_.MustWait()) << "the slice is over";
  EXPECT_GE(AwaitOpen(), rules_.rest);
  EXPECT_FALSE(gate_.MustWait());
}

TEST_F(IdleGateTest, RequestsDisturb) {
  const int64_t before = gate_.disturbances();
  Request();
  EXPECT_NE(gate_.disturbances(), before);
}

TEST_F(IdleGateTest, StopCancelsWhoWaits) {
  FakeClock clock;
  IdleGate gate(activity_, clock);
  activity_.Add(1);
  Status status;
  std::thread waiting([&] { status = gate.Await(); });
  clock.AwaitWaiters(1);
  gate.Stop();
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_TRUE(gate.MustWait());
  EXPECT_TRUE(absl::IsCancelled(gate.Await()));
}

TEST_F(IdleGateTest, WhatIsSkippedEndsAndTheNextGoesOn) {
  gate_.Skip();
  EXPECT_TRUE(gate_.MustWait());
  EXPECT_TRUE(absl::IsCancelled(gate_.Await()));
  gate_.Resume();
  EXPECT_FALSE(gate_.MustWait());
  EXPECT_TRUE(gate_.Await().ok());
}

}  // namespace
}  // namespace swizzle
