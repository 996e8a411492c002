#include "model_loader/plan/choose/plan_race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/support/busy_machine.h"
#include "tests/support/fake_plan.h"
#include "tests/support/scripted_gate.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::BusyMachine;
using ::swizzle::testing::FakePlan;
using ::swizzle::testing::IsOk;
using ::swizzle::testing::ScriptedGate;

// A plan of one float a row; run number n takes `row` a row and `noise(n)`.
class ScriptedPlan final : public FakePlan {
 public:
  ScriptedPlan(ScriptedGate& gate, absl::Duration row, std::vector<absl::Duration> noise = {})
      : FakePlan(Network(), 8), gate_(gate), row_(row), noise_(std::move(noise)) {
    network_.values.resize(1);
    network_.inputs = {{"x", DType::kFloat32, {1}, 0}};
    report_.micro_batch = 8;
  }

  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override {
    return std::make_unique<ScriptedRunner>(*this);
  }

 private:
  class ScriptedRunner final : public Runner {
   public:
    explicit ScriptedRunner(const ScriptedPlan& plan) : plan_(plan) {}
    std::span<float> Input(int, BatchSize size) override {
      input_.resize(static_cast<size_t>(size.rows));
      return input_;
    }
    std::span<const float> Output(int, BatchSize) override { return {}; }
    std::span<int32_t> Ids(int, BatchSize) override { return {}; }
    std::span<std::byte> InputMemory(int i, BatchSize size) override { return std::as_writable_bytes(Input(i, size)); }
    void WriteInput(int, BatchSize, size_t, std::span<const std::byte>) override {}
    void CopyInput(int, BatchSize, size_t, std::span<const std::byte>) override {}
    Status Run(BatchSize size, const Sequences*) override {
      const size_t run = runs_++;
      plan_.gate_.now += plan_.row_ * size.rows;
      BusyMachine::work += plan_.row_ * size.rows;
      if (!plan_.noise_.empty()) plan_.gate_.now += plan_.noise_[run % plan_.noise_.size()];
      return absl::OkStatus();
    }
    Status RunPart(BatchPart part) override { return Run(part.rows, nullptr); }

   private:
    const ScriptedPlan& plan_;
    std::vector<float> input_;
    size_t runs_ = 0;
  };

  ScriptedGate& gate_;
  const absl::Duration row_;
  const std::vector<absl::Duration> noise_;
};

std::vector<TimeRatio> Race(ScriptedGate& gate, const ScriptedPlan& challenger, const ScriptedPlan& running,
                            absl::Duration budget, absl::Duration give_up = absl::InfiniteDuration(),
                            decltype(PlanOptions::make_watch) make_watch = nullptr) {
  TrialConditions conditions(PlanOptions{.gate = &gate, .make_watch = make_watch});
  conditions.AfterThreads();
  const auto one = challenger.NewRunner({}), other = running.NewRunner({});
  const auto ratios = RacePlans(challenger, **one, running, **other, budget, give_up, conditions);
  EXPECT_THAT(ratios.status(), IsOk());
  return *ratios;
}

TEST(PlanRaceTest, TheFasterPlanWinsAndTheSlowerDoesNot) {
  ScriptedGate gate;
  const ScriptedPlan fast(gate, absl::Microseconds(900)), slow(gate, absl::Microseconds(1000));
  const auto ratios = Race(gate, fast, slow, absl::Seconds(1));
  ASSERT_EQ(ratios.size(), 2u) << "one row, and eight";
  EXPECT_DOUBLE_EQ(ratios[0].median, 0.9);
  EXPECT_DOUBLE_EQ(ratios[1].median, 0.9);
  EXPECT_TRUE(IsFaster(ratios));
  EXPECT_FALSE(IsFaster(Race(gate, slow, fast, absl::Seconds(1))));
  EXPECT_FALSE(IsFaster(Race(gate, slow, slow, absl::Seconds(1))));
}

// A neighbour that takes the processor now and then, from either.
TEST(PlanRaceTest, TimeSlicesDoNotDecide) {
  ScriptedGate gate;
  const std::vector<absl::Duration> slices = {absl::ZeroDuration(), absl::Milliseconds(4), absl::ZeroDuration(),
                                              absl::ZeroDuration(), absl::Milliseconds(8)};
  const ScriptedPlan fast(gate, absl::Microseconds(800), slices), slow(gate, absl::Microseconds(1000), slices);
  EXPECT_FALSE(IsFaster(Race(gate, slow, fast, absl::Seconds(5))));
}

// Neighbours that take much more of the time than either.
TEST(PlanRaceTest, WorkDecidesWhereMostRunsAreDisturbed) {
  ScriptedGate gate;
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 7; ++i) waits.push_back(absl::Milliseconds(4 * (i * i % 7)));
  const ScriptedPlan fast(gate, absl::Microseconds(900), waits);
  std::rotate(waits.begin(), waits.begin() + 3, waits.end());
  const ScriptedPlan slow(gate, absl::Microseconds(1000), waits);
  EXPECT_FALSE(IsFaster(Race(gate, fast, slow, absl::Seconds(1))));
  const auto ratios = Race(gate, fast, slow, absl::Seconds(1), absl::InfiniteDuration(), &BusyMachine::Make);
  ASSERT_EQ(ratios.size(), 2u);
  EXPECT_NEAR(ratios[0].median, 0.9, 1e-9);
  EXPECT_NEAR(ratios[1].median, 0.9, 1e-9);
  EXPECT_TRUE(IsFaster(ratios));
  EXPECT_FALSE(IsFaster(Race(gate, slow, fast, absl::Seconds(1), absl::InfiniteDuration(), &BusyMachine::Make)));
}

TEST(PlanRaceTest, IsGivenUpWhereItsLeastTurnsTakeTooLong) {
  ScriptedGate gate;
  const ScriptedPlan plan(gate, absl::Seconds(1));
  EXPECT_TRUE(Race(gate, plan, plan, absl::Milliseconds(10), absl::Seconds(30)).empty());
  EXPECT_LE(gate.now, absl::Seconds(30) + 2 * absl::Seconds(8)) << "two runs of eight rows may be under way";
}

TEST(PlanRaceTest, KeepsItsBudget) {
  ScriptedGate gate;
  const ScriptedPlan plan(gate, absl::Milliseconds(1));
  Race(gate, plan, plan, absl::Milliseconds(200));
  const absl::Duration turn = 2 * absl::Milliseconds(1 + 8);
  EXPECT_LE(gate.now, absl::Milliseconds(200) + 2 * turn);
  gate.now = absl::ZeroDuration();
  Race(gate, plan, plan, absl::ZeroDuration());
  EXPECT_EQ(gate.now, 6 * turn) << "five, and one to warm up";
}

TEST(PlanRaceTest, TheAdvantageHasToExceedTheNoise) {
  const auto decides = [](std::vector<TimeRatio> ratios) { return IsFaster(ratios); };
  EXPECT_TRUE(decides({{0.95, 0.01}, {0.97, 0.01}}));
  EXPECT_FALSE(decides({{0.95, 0.05}, {0.97, 0.05}}));
  EXPECT_FALSE(decides({{0.995, 0.0}, {0.995, 0.0}})) << "not worth a change";
  EXPECT_FALSE(decides({{0.80, 0.01}, {1.10, 0.01}})) << "slower at one size";
  EXPECT_TRUE(decides({{0.80, 0.01}, {1.05, 0.05}})) << "which may be noise";
}

TEST(TimeRatioTest, ErrorsShrinkWithTurns) {
  const TimeRatio few = RatioOf({0.9, 1.0, 1.1});
  EXPECT_DOUBLE_EQ(few.median, 1.0);
  std::vector<double> many;
  for (int i = 0; i < 300; ++i) many.push_back(0.9 + 0.1 * (i % 3));
  const TimeRatio sure = RatioOf(many);
  EXPECT_DOUBLE_EQ(sure.median, 1.0);
  EXPECT_NEAR(sure.error, few.error / 10, 1e-9);
  EXPECT_EQ(RatioOf({0.9}).error, 0.0);
}

}  // namespace
}  // namespace swizzle
