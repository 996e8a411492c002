#include "server/model/compute_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/planner.h"
#include "tests/support/counting_gate.h"
#include "tests/support/fake_clock.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

class ComputeTurnsTest : public ::testing::Test {
 protected:
  ExecutorTurn NewModel() { return {turns_, std::make_shared<ComputeTurns::Share>()}; }

  // Steps of this length, until the executor has to wait; at most 1000.
  int RunSteps(ExecutorTurn& turn, absl::Duration step = absl::Milliseconds(1)) {
    int steps = 0;
    for (; steps < 1000 && !turn.MustWait(); ++steps) clock_.Advance(step);
    return steps;
  }

  FakeClock clock_;
  const std::shared_ptr<ComputeTurns> turns_ = std::make_shared<ComputeTurns>(4, clock_);
};

TEST_F(ComputeTurnsTest, AModelAloneNeverWaits) {
  ExecutorTurn turn = NewModel();
  turn.Begin(4);
  EXPECT_EQ(RunSteps(turn), 1000);
  turn.End();
}

TEST_F(ComputeTurnsTest, ABusyModelGivesWayToOneThatWasIdle) {
  ExecutorTurn busy = NewModel(), quiet = NewModel();
  busy.Begin(4);
  RunSteps(busy);
  quiet.Begin(4);
  EXPECT_TRUE(busy.MustWait());
  EXPECT_EQ(RunSteps(quiet, absl::Milliseconds(10)), 11) << "as far as it was behind, and a turn more";
  busy.Wait();
  EXPECT_FALSE(busy.MustWait());
  quiet.End();
  EXPECT_EQ(RunSteps(busy), 1000);
  busy.End();
}

TEST_F(ComputeTurnsTest, AQuietModelIsPreferredEachTime) {
  ExecutorTurn busy = NewModel(), quiet = NewModel();
  busy.Begin(4);
  RunSteps(busy);
  for (int i = 0; i < 100; ++i) {
    quiet.Begin(4);
    EXPECT_TRUE(busy.MustWait()) << i;
    EXPECT_FALSE(quiet.MustWait()) << i;
    clock_.Advance(absl::Milliseconds(4));
    quiet.End();
    busy.Wait();
    EXPECT_FALSE(busy.MustWait()) << i;
    clock_.Advance(absl::Milliseconds(20));
  }
  busy.End();
}

TEST_F(ComputeTurnsTest, BusyModelsTakeTurns) {
  ExecutorTurn a = NewModel(), b = NewModel();
  a.Begin(4);
  b.Begin(4);
  EXPECT_TRUE(b.MustWait()) << "the turn is the first one's";
  EXPECT_EQ(RunSteps(a), 6);
  for (int turn = 0; turn < 10; ++turn) {
    ExecutorTurn& runs = turn % 2 == 0 ? b : a;
    runs.Wait();
    const int steps = RunSteps(runs);
    EXPECT_GE(steps, 6);
    EXPECT_LE(steps, 12);
  }
  a.End();
  b.End();
}

TEST_F(ComputeTurnsTest, WaitsUntilTheOtherIsDone) {
  ExecutorTurn busy = NewModel(), quiet = NewModel();
  busy.Begin(4);
  RunSteps(busy);
  quiet.Begin(4);
  ASSERT_TRUE(busy.MustWait());
  std::atomic<bool> done = false;
  std::thread executor([&] {
    busy.Wait();
    EXPECT_TRUE(done);
    busy.End();
  });
  std::this_thread::yield();
  done = true;
  quiet.End();
  executor.join();
}

TEST_F(ComputeTurnsTest, ModelsThatHaveProcessorsEachDontWait) {
  ExecutorTurn a = NewModel(), b = NewModel(), c = NewModel();
  a.Begin(2);
  b.Begin(2);
  EXPECT_EQ(RunSteps(a), 1000);
  EXPECT_EQ(RunSteps(b), 1000);
  c.Begin(1);
  EXPECT_FALSE(c.MustWait()) << "beside the one whose turn it is there is room";
  c.End();
  b.End();
  a.End();
}

TEST_F(ComputeTurnsTest, ExecutorsOfAModelRunTogether) {
  const auto share = std::make_shared<ComputeTurns::Share>();
  ExecutorTurn one(turns_, share), two(turns_, share), other = NewModel();
  one.Begin(2);
  two.Begin(2);
  other.Begin(4);
  EXPECT_TRUE(other.MustWait());
  EXPECT_FALSE(one.MustWait());
  EXPECT_FALSE(two.MustWait());
  one.End();
  EXPECT_TRUE(other.MustWait());
  two.End();
  EXPECT_FALSE(other.MustWait());
  other.End();
}

TEST_F(ComputeTurnsTest, IsIdleWhileNoModelComputes) {
  ExecutorTurn one = NewModel(), other = NewModel();
  EXPECT_TRUE(other.idle());
  one.Begin(1);
  EXPECT_FALSE(other.idle());
  other.Begin(1);
  one.End();
  EXPECT_FALSE(other.idle());
  other.End();
  EXPECT_TRUE(other.idle());
}

// What was long ago is not held against a model.
TEST_F(ComputeTurnsTest, AheadByNoMoreThanCounts) {
  ExecutorTurn once_busy = NewModel(), other = NewModel();
  once_busy.Begin(4);
  clock_.Advance(absl::Hours(1));
  once_busy.End();
  other.Begin(4);
  once_busy.Begin(4);
  EXPECT_LE(RunSteps(other), 106);
  once_busy.Wait();
  EXPECT_FALSE(once_busy.MustWait());
  once_busy.End();
  other.End();
}

TEST(StepGateTest, IsAskedBetweenTheStepsOfAPlan) {
  const auto backend = NewCpuBackend();
  PlanOptions options;
  options.tuning_budget = absl::ZeroDuration();
  const auto plan = *MakePlan(testing::MakeRandomNetwork({}), *backend, options);
  testing::CountingGate gate;
  const auto gated = *plan->NewRunner({.gate = &gate}), free = *plan->NewRunner({});
  for (Runner* runner : {gated.get(), free.get()}) {
    std::ranges::fill(runner->Input(0, 2), 0.5f);
    ASSERT_TRUE(runner->Run(2).ok());
  }
  EXPECT_GT(gate.asked, 5);
  EXPECT_EQ(gate.waited, 1);
  EXPECT_TRUE(std::ranges::equal(gated->Output(0, 2), free->Output(0, 2)));
}

}  // namespace
}  // namespace swizzle
