#include "model_loader/plan/choose/serial_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/busy_machine.h"
#include "tests/support/scripted_gate.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::BusyMachine;
using ::swizzle::testing::IsError;
using ::swizzle::testing::ScriptedGate;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr absl::Duration kSerialBudget = absl::Seconds(1);

// Three steps of which the second is faster on one thread, the third by too little. Each run counts.
class ThreeSteps {
 public:
  StatusOr<std::vector<bool>> Choose(absl::Duration budget = kSerialBudget, TuningCache* cache = nullptr,
                                     uint64_t hash = 1) {
    TrialConditions conditions(PlanOptions{.make_watch = make_watch});
    conditions.AfterThreads();
    return ChooseSerialSteps(
        3, budget, cache, hash, [this](const std::vector<bool>& serial) { return Time(serial); }, conditions);
  }

  absl::Duration mixing;  // what the first step takes more where it runs on all threads and the second on one
  int runs = 0;
  decltype(PlanOptions::make_watch) make_watch = nullptr;

 private:
  StatusOr<std::vector<absl::Duration>> Time(const std::vector<bool>& serial) {
    ++runs;
    const absl::Duration lost = !serial[0] && serial[1] ? mixing : absl::ZeroDuration();
    return std::vector<absl::Duration>{absl::Microseconds(serial[0] ? 400 : 100) + lost,
                                       absl::Microseconds(serial[1] ? 20 : 60),
                                       absl::Microseconds(serial[2] ? 49 : 50)};
  }
};

TEST(SerialStepsTest, AreThoseThatOneThreadIsFasterWith) {
  EXPECT_THAT(*ThreeSteps().Choose(), ElementsAre(false, true, false));
}

TEST(SerialStepsTest, NoneAreWhereTheWholePlanDoesNotWin) {
  ThreeSteps steps;
  steps.mixing = absl::Microseconds(40);
  EXPECT_THAT(*steps.Choose(), Each(false));
}

TEST(SerialStepsTest, NoneAreBesideBusyProcesses) {
  ThreeSteps steps;
  steps.make_watch = &BusyMachine::Make;
  EXPECT_THAT(*steps.Choose(), Each(false));
}

// As where threads wait for each other through other programs' time slices.
TEST(SerialStepsTest, AreGivenUpWhereRunsOnAllThreadsTakeTooLong) {
  ScriptedGate gate;
  TrialConditions conditions(PlanOptions{.gate = &gate, .make_watch = nullptr});
  int runs = 0;
  const auto time = [&](const std::vector<bool>& serial) -> StatusOr<std::vector<absl::Duration>> {
    ++runs;
    const absl::Duration step = serial[0] ? absl::Microseconds(10) : absl::Seconds(3);
    gate.now += step;
    return std::vector<absl::Duration>{step};
  };
  EXPECT_THAT(*ChooseSerialSteps(1, kSerialBudget, nullptr, 1, time, conditions), Each(false));
  EXPECT_EQ(runs, 2 + 4) << "before all, and one turn";
}

TEST(SerialStepsTest, NothingIsTimedWithoutABudget) {
  ThreeSteps steps;
  EXPECT_THAT(*steps.Choose(absl::ZeroDuration()), Each(false));
  EXPECT_EQ(steps.runs, 0);
  EXPECT_THAT(*steps.Choose(absl::Microseconds(10)), Each(false)) << "one run takes 469 us";
  EXPECT_EQ(steps.runs, 2);
}

TEST(SerialStepsTest, AreNotMeasuredAgain) {
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  TuningCache cache("", *cpu);
  EXPECT_THAT(*ThreeSteps().Choose(kSerialBudget, &cache), ElementsAre(false, true, false));
  ThreeSteps again, mixed;
  EXPECT_THAT(*again.Choose(absl::ZeroDuration(), &cache), ElementsAre(false, true, false));
  EXPECT_THAT(*again.Choose(absl::ZeroDuration(), &cache, 2), Each(false)) << "another plan";
  mixed.mixing = absl::Microseconds(40);
  EXPECT_THAT(*mixed.Choose(kSerialBudget, &cache, 3), Each(false));
  EXPECT_THAT(*again.Choose(absl::ZeroDuration(), &cache, 3), Each(false)) << "what lost is remembered, too";
  EXPECT_EQ(again.runs, 0);
}

TEST(SerialStepsTest, AFailedRunIsReported) {
  const auto fail = [](const std::vector<bool>&) -> StatusOr<std::vector<absl::Duration>> {
    return MakeError(StatusCode::kInternal, "lost");
  };
  TrialConditions conditions(PlanOptions{.make_watch = nullptr});
  EXPECT_THAT(ChooseSerialSteps(3, kSerialBudget, nullptr, 1, fail, conditions).status(),
              IsError(StatusCode::kInternal, "lost"));
}

}  // namespace
}  // namespace swizzle
