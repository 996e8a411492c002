#include "model_loader/plan/choose/micro_batch.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/busy_machine.h"
#include "tests/support/fake_plan.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::BusyMachine;
using ::swizzle::testing::FakePlan;
using ::swizzle::testing::IsOk;

constexpr absl::Duration kBudget = absl::Milliseconds(300);

// What runners of one plan have done, and the time that passed on a clock of their own.
struct Log {
  int lucky_run = 0;            // of eight rows, which takes no time
  std::map<int64_t, int> runs;  // by rows
  int parts = 0;
  std::map<int64_t, absl::Duration> work;  // by rows, where it is less than what a run takes
  absl::Duration now;
};

// Takes as long as a run of so many rows does, and counts. One input of one float a row.
class TimedRunner final : public Runner {
 public:
  TimedRunner(const std::map<int64_t, absl::Duration>& times, Log& log) : times_(times), log_(log) {}

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
    const bool lucky = ++log_.runs[size.rows] == log_.lucky_run && size.rows == 8;
    log_.now += lucky ? absl::Microseconds(10) : times_.at(size.rows);
    BusyMachine::work += log_.work[size.rows];
    return absl::OkStatus();
  }
  // The parts of a batch have to follow each other.
  Status RunPart(BatchPart part) override {
    EXPECT_EQ(part.first, next_);
    next_ = (part.first + part.rows) % part.of;
    ++log_.parts;
    return Run(part.rows, nullptr);
  }

 private:
  const std::map<int64_t, absl::Duration>& times_;
  Log& log_;
  std::vector<float> input_;
  int64_t next_ = 0;
};

class TimedPlan final : public FakePlan {
 public:
  TimedPlan(int64_t max_batch, std::map<int64_t, absl::Duration> times)
      : FakePlan(Network(), max_batch), times_(std::move(times)) {
    network_.values.resize(1);
    network_.inputs = {{"x", DType::kFloat32, {1}, 0}};
    report_.threads = 2;
  }

  void FixBatch(int64_t batch) { network_.batch_size = batch; }
  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override {
    return std::make_unique<TimedRunner>(times_, log);
  }

  mutable Log log;

 private:
  const std::map<int64_t, absl::Duration> times_;
};

StatusOr<int64_t> Choose(const TimedPlan& plan, absl::Duration budget, TuningCache* cache, uint64_t plan_hash,
                         decltype(PlanOptions::make_watch) make_watch = nullptr) {
  TrialConditions conditions(PlanOptions{.make_watch = make_watch});
  return ChooseMicroBatch(
      plan, budget, cache, plan_hash, [&] { return plan.log.now; }, conditions);
}

// By far the fastest for 8 rows: four runs of two.
TimedPlan TwoAreBest(int64_t max_batch = 64) {
  return TimedPlan(max_batch, {{1, absl::Milliseconds(1)},
                               {2, absl::Microseconds(200)},
                               {4, absl::Milliseconds(5)},
                               {8, absl::Milliseconds(10)}});
}

TEST(MicroBatchTest, TakesTheSizeThatIsFastestForAWholeBatch) {
  const TimedPlan plan = TwoAreBest();
  const auto size = Choose(plan, kBudget, nullptr, 1);
  ASSERT_THAT(size.status(), IsOk());
  EXPECT_EQ(*size, 2);
  EXPECT_EQ(plan.log.runs[2] % 4, 0);                     // the whole batch each time
  EXPECT_EQ(plan.log.runs[1], 1 + 2 * plan.log.runs[2]);  // one more, before all
  EXPECT_EQ(plan.log.parts, plan.log.runs[1] + plan.log.runs[2] + plan.log.runs[4] + plan.log.runs[8]);
}

TEST(MicroBatchTest, OneFastRunDecidesNothing) {
  TimedPlan plan = TwoAreBest();
  plan.log.lucky_run = 2;
  EXPECT_EQ(*Choose(plan, kBudget, nullptr, 1), 2);
}

TEST(MicroBatchTest, BesideBusyProcessesWorkDecides) {
  TimedPlan plan = TwoAreBest();
  for (const int64_t rows : {1, 2, 4, 8}) plan.log.work[rows] = absl::Microseconds(rows == 4 ? 200 : 100 * rows);
  EXPECT_EQ(*Choose(plan, kBudget, nullptr, 1, &BusyMachine::Make), 4);
}

// Else the next start, which measures nothing, would run whole batches at once.
TEST(MicroBatchTest, WhatWorkHasDecidedIsKept) {
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  TuningCache cache("", *cpu);
  TimedPlan plan = TwoAreBest();
  for (const int64_t rows : {1, 2, 4, 8}) plan.log.work[rows] = absl::Microseconds(rows == 4 ? 200 : 100 * rows);
  EXPECT_EQ(*Choose(plan, kBudget, &cache, 1, &BusyMachine::Make), 4);
  EXPECT_EQ(*Choose(plan, absl::ZeroDuration(), &cache, 1), 4);
  EXPECT_LT(*cache.FindRuns(1, 8, 4), 2000) << "microseconds of work, not of waiting";
}

TEST(MicroBatchTest, IsAllWhereNothingCanBeMeasured) {
  const TimedPlan plan = TwoAreBest();
  EXPECT_EQ(*Choose(plan, absl::ZeroDuration(), nullptr, 1), 64);
  EXPECT_TRUE(plan.log.runs.empty());
  EXPECT_EQ(*Choose(plan, absl::Milliseconds(1), nullptr, 1), 64);  // one row takes as long
  EXPECT_EQ(plan.log.runs, (std::map<int64_t, int>{{1, 1}}));
}

// Of one row alone the plan seemed quick.
TEST(MicroBatchTest, IsGivenUpWhereTwoTurnsTakeTooLong) {
  const absl::Duration most = absl::Seconds(20);
  const TimedPlan plan(64, {{1, absl::Milliseconds(1)}, {2, most}, {4, most}, {8, most}});
  EXPECT_EQ(*Choose(plan, kBudget, nullptr, 1), 64);
  EXPECT_LE(plan.log.now, most + kBudget);
}

TEST(MicroBatchTest, HasNoChoiceWithOneRowOrAFixedBatch) {
  const TimedPlan one = TwoAreBest(1);
  EXPECT_EQ(*Choose(one, kBudget, nullptr, 1), 1);
  EXPECT_TRUE(one.log.runs.empty());
  TimedPlan fixed = TwoAreBest(8);
  fixed.FixBatch(8);
  EXPECT_EQ(*Choose(fixed, kBudget, nullptr, 1), 8);
  EXPECT_TRUE(fixed.log.runs.empty());
}

TEST(MicroBatchTest, IsNotMeasuredAgain) {
  const std::unique_ptr<Backend> cpu = NewCpuBackend();
  TuningCache cache("", *cpu);
  EXPECT_EQ(*Choose(TwoAreBest(), kBudget, &cache, 1), 2);
  const TimedPlan again = TwoAreBest();
  EXPECT_EQ(*Choose(again, absl::ZeroDuration(), &cache, 1), 2);
  EXPECT_TRUE(again.log.runs.empty());
  EXPECT_EQ(*Choose(again, absl::ZeroDuration(), &cache, 2), 64);  // another plan
}

}  // namespace
}  // namespace swizzle
