#include "model_loader/plan/choose/micro_batch.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/fake_plan.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::FakePlan;
using ::swizzle::testing::IsOk;

constexpr absl::Duration kBudget = absl::Milliseconds(300);

// Sleeps as long as a run of so many rows takes, and counts. One input of one float a row.
class SleepyPlan final : public FakePlan {
 public:
  SleepyPlan(int64_t max_batch, std::map<int64_t, absl::Duration> times)
      : FakePlan(Network(), max_batch), times_(std::move(times)) {
    network_.values.resize(1);
    network_.inputs = {{"x", DType::kFloat32, {1}, 0}};
    report_.threads = 2;
  }

  void FixBatch(int64_t batch) { network_.batch_size = batch; }
  std::span<float> Input(ExecutionState&, int, BatchSize size) const override {
    input_.resize(static_cast<size_t>(size.rows));
    return input_;
  }
  std::span<const float> Output(ExecutionState&, int, BatchSize) const override { return {}; }
  Status Run(ExecutionState&, BatchSize size, const Sequences*) const override {
    const bool lucky = ++runs[size.rows] == lucky_run && size.rows == 8;
    absl::SleepFor(lucky ? absl::Microseconds(10) : times_.at(size.rows));
    return absl::OkStatus();
  }

  // The parts of a batch have to follow each other.
  Status RunPart(ExecutionState& state, BatchPart part) const override {
    EXPECT_EQ(part.first, next_);
    next_ = (part.first + part.rows) % part.of;
    ++parts;
    return Run(state, part.rows, nullptr);
  }

  int lucky_run = 0;                    // of eight rows, which takes no time
  mutable std::map<int64_t, int> runs;  // by rows
  mutable int parts = 0;

 private:
  const std::map<int64_t, absl::Duration> times_;
  mutable std::vector<float> input_;
  mutable int64_t next_ = 0;
};

// By far the fastest for 8 rows: four runs of two.
SleepyPlan TwoAreBest(int64_t max_batch = 64) {
  return SleepyPlan(max_batch, {{1, absl::Milliseconds(1)},
                                {2, absl::Microseconds(200)},
                                {4, absl::Milliseconds(5)},
                                {8, absl::Milliseconds(10)}});
}

TEST(MicroBatchTest, TakesTheSizeThatIsFastestForAWholeBatch) {
  const SleepyPlan plan = TwoAreBest();
  const auto size = ChooseMicroBatch(plan, kBudget, nullptr, 1);
  ASSERT_THAT(size.status(), IsOk());
  EXPECT_EQ(*size, 2);
  EXPECT_EQ(plan.runs[2] % 4, 0);                 // the whole batch each time
  EXPECT_EQ(plan.runs[1], 1 + 2 * plan.runs[2]);  // one more, before all
  EXPECT_EQ(plan.parts, plan.runs[1] + plan.runs[2] + plan.runs[4] + plan.runs[8]);
}

TEST(MicroBatchTest, OneFastRunDecidesNothing) {
  SleepyPlan plan = TwoAreBest();
  plan.lucky_run = 2;
  EXPECT_EQ(*ChooseMicroBatch(plan, kBudget, nullptr, 1), 2);
}

TEST(MicroBatchTest, IsAllWhereNothingCanBeMeasured) {
  const SleepyPlan plan = TwoAreBest();
  EXPECT_EQ(*ChooseMicroBatch(plan, absl::ZeroDuration(), nullptr, 1), 64);
  EXPECT_TRUE(plan.runs.empty());
  EXPECT_EQ(*ChooseMicroBatch(plan, absl::Milliseconds(1), nullptr, 1), 64);  // one row takes as long
  EXPECT_EQ(plan.runs, (std::map<int64_t, int>{{1, 1}}));
}

TEST(MicroBatchTest, HasNoChoiceWithOneRowOrAFixedBatch) {
  const SleepyPlan one = TwoAreBest(1);
  EXPECT_EQ(*ChooseMicroBatch(one, kBudget, nullptr, 1), 1);
  EXPECT_TRUE(one.runs.empty());
  SleepyPlan fixed = TwoAreBest(8);
  fixed.FixBatch(8);
  EXPECT_EQ(*ChooseMicroBatch(fixed, kBudget, nullptr, 1), 8);
  EXPECT_TRUE(fixed.runs.empty());
}

TEST(MicroBatchTest, IsNotMeasuredAgain) {
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  TuningCache cache("", *cpu);
  EXPECT_EQ(*ChooseMicroBatch(TwoAreBest(), kBudget, &cache, 1), 2);
  const SleepyPlan again = TwoAreBest();
  EXPECT_EQ(*ChooseMicroBatch(again, absl::ZeroDuration(), &cache, 1), 2);
  EXPECT_TRUE(again.runs.empty());
  EXPECT_EQ(*ChooseMicroBatch(again, absl::ZeroDuration(), &cache, 2), 64);  // another plan
}

}  // namespace
}  // namespace swizzle
