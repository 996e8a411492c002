#include "model_loader/plan/step_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::IsError;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr absl::Duration kBudget = absl::Seconds(1);

// Three steps of which the second is fastest on one thread, the third on two. Each run counts.
class ThreeSteps {
 public:
  StatusOr<std::vector<absl::Duration>> Time(std::span<const int> threads) {
    ++runs;
    const bool mixed = threads[0] != threads[1] || threads[1] != threads[2];
    const absl::Duration lost = mixed ? mixing : absl::ZeroDuration();
    return std::vector<absl::Duration>{absl::Microseconds(400.0 / threads[0]) + lost,
                                       absl::Microseconds(10.0 + 10 * threads[1]),
                                       absl::Microseconds(threads[2] == 2 ? 5 : 40)};
  }
  StatusOr<std::vector<int>> Choose(int threads, absl::Duration budget = kBudget, TuningCache* cache = nullptr,
                                    uint64_t hash = 1) {
    return ChooseStepThreads(3, threads, budget, cache, hash, [this](std::span<const int> of) { return Time(of); });
  }

  absl::Duration mixing;  // what the first step takes more where others run on other threads
  int runs = 0;
};

TEST(StepThreadsTest, EachStepGetsTheThreadsItIsFastestOn) {
  EXPECT_THAT(*ThreeSteps().Choose(4), ElementsAre(4, 1, 2));
  EXPECT_THAT(*ThreeSteps().Choose(6), ElementsAre(6, 1, 6)) << "6, 3 and 1 threads are timed";
}

TEST(StepThreadsTest, AllStaysWhereTheWholePlanDoesNotWin) {
  ThreeSteps steps;
  steps.mixing = absl::Microseconds(70);
  EXPECT_THAT(*steps.Choose(4), Each(4));
}

TEST(StepThreadsTest, NothingIsTimedWithoutAChoiceOrABudget) {
  ThreeSteps steps;
  EXPECT_THAT(*steps.Choose(1), Each(1));
  EXPECT_THAT(*steps.Choose(4, absl::ZeroDuration()), Each(4));
  EXPECT_EQ(steps.runs, 0);
  EXPECT_THAT(*steps.Choose(4, absl::Microseconds(10)), Each(4)) << "one run takes 190 us";
  EXPECT_EQ(steps.runs, 2);
}

TEST(StepThreadsTest, IsNotMeasuredAgain) {
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  TuningCache cache("", *cpu);
  EXPECT_THAT(*ThreeSteps().Choose(4, kBudget, &cache), ElementsAre(4, 1, 2));
  ThreeSteps again, mixed;
  EXPECT_THAT(*again.Choose(4, absl::ZeroDuration(), &cache), ElementsAre(4, 1, 2));
  EXPECT_EQ(again.runs, 0);
  EXPECT_THAT(*again.Choose(4, absl::ZeroDuration(), &cache, 2), Each(4)) << "another plan";
  mixed.mixing = absl::Microseconds(70);
  EXPECT_THAT(*mixed.Choose(4, kBudget, &cache, 3), Each(4));
  EXPECT_THAT(*again.Choose(4, absl::ZeroDuration(), &cache, 3), Each(4)) << "what lost is remembered, too";
}

TEST(StepThreadsTest, AFailedRunIsReported) {
  const auto fail = [](std::span<const int>) -> StatusOr<std::vector<absl::Duration>> {
    return MakeError(StatusCode::kInternal, "lost");
  };
  EXPECT_THAT(ChooseStepThreads(3, 2, kBudget, nullptr, 1, fail).status(), IsError(StatusCode::kInternal, "lost"));
}

}  // namespace
}  // namespace swizzle
