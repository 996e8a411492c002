#include "server/tuning/idle_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

class IdleGateTest : public ::testing::Test {
 protected:
  // What Await returns while the test moves the clock; and the time that passed.
  Status AwaitMoving(absl::Duration& passed) {
    Status status;
    const Instant start = clock_.Now();
    std::atomic<bool> done = false;
    std::thread waiting([&] {
      status = gate_.Await();
      done = true;
    });
    while (!done) {
      clock_.Advance(absl::Milliseconds(1));
      std::this_thread::yield();
    }
    waiting.join();
    passed = clock_.Now() - start;
    return status;
  }
  // A request that is there and gone.
  void Request() {
    activity_.Add(1);
    activity_.Add(-1);
  }

  FakeClock clock_;
  Activity activity_;
  const IdleRules rules_;
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
  absl::Duration passed;
  EXPECT_TRUE(AwaitMoving(passed).ok());
  EXPECT_GE(passed, rules_.quiet);
  EXPECT_LE(gate_.Spent(), absl::Milliseconds(2) + absl::Milliseconds(1)) << "the clock may move once more";
  EXPECT_FALSE(gate_.MustWait());
}

TEST_F(IdleGateTest, BesideTrafficMeasuresATenthOfTheTime) {
  Request();
  absl::Duration passed;
  EXPECT_TRUE(AwaitMoving(passed).ok());
  clock_.Advance(rules_.slice / 2);
  EXPECT_FALSE(gate_.MustWait());
  clock_.Advance(rules_.slice / 2);
  EXPECT_TRUE(gate_.MustWait()) << "the slice is over";
  EXPECT_TRUE(AwaitMoving(passed).ok());
  EXPECT_GE(passed, rules_.rest);
  EXPECT_FALSE(gate_.MustWait());
}

TEST_F(IdleGateTest, RequestsDisturb) {
  const int64_t before = gate_.disturbances();
  Request();
  EXPECT_NE(gate_.disturbances(), before);
}

TEST_F(IdleGateTest, StopCancelsWhoWaits) {
  activity_.Add(1);
  Status status;
  std::thread waiting([&] { status = gate_.Await(); });
  clock_.AwaitWaiters(1);
  gate_.Stop();
  waiting.join();
  EXPECT_TRUE(absl::IsCancelled(status));
  EXPECT_TRUE(gate_.MustWait());
  EXPECT_TRUE(absl::IsCancelled(gate_.Await()));
}

}  // namespace
}  // namespace swizzle
