#include "server/tuning/background_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "server/model/derived_spec.h"
#include "tests/server/model/sum_plan.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// What the tuner records; tests wait for states.
class TuningMetrics final : public TuningRecorder {
 public:
  void RecordTuning(const TuningRecord& record) override {
    const MutexLock lock(mutex_);
    if (record.state == TuningState::kMeasuring && std::exchange(out_of_memory, false)) throw std::bad_alloc();
    state_ = record.state;
    replaced_ += record.replaced != nullptr;
    suspect_ = record.suspect;
    changed_.SignalAll();
  }

  void AwaitState(TuningState state) {
    const MutexLock lock(mutex_);
    while (state_ != state) changed_.Wait(mutex_);
  }
  int replaced() const {
    const MutexLock lock(mutex_);
    return replaced_;
  }
  int64_t suspect() const {
    const MutexLock lock(mutex_);
    return suspect_;
  }

  bool out_of_memory = false;  // when it is told next that something is measured

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  TuningState state_ ABSL_GUARDED_BY(mutex_) = TuningState::kOff;
  int replaced_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t suspect_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Answers each pass with the next of a script, and notes its budget.
struct Script {
  std::vector<std::function<StatusOr<Tuned>(MeasureGate& gate)>> passes;
  std::vector<absl::Duration> budgets;
};

class ScriptedTuner final : public PlanTuner {
 public:
  explicit ScriptedTuner(Script& script) : script_(script) {}
  StatusOr<Tuned> Tune(MeasureGate& gate, absl::Duration budget) override {
    script_.budgets.push_back(budget);
    return script_.passes.at(script_.budgets.size() - 1)(gate);
  }

 private:
  Script& script_;
};

class BackgroundTunerTest : public ::testing::Test {
 protected:
  BackgroundTunerTest() {
    ModelSpec spec = *DeriveSpec(InterfaceOf(SumNetwork(0)));
    spec.name = "sum";
    spec.max_batch_size = 8;
    auto model = NewServedModel(std::move(spec), {std::make_shared<SumPlan>(0, 8)});
    SWIZZLE_CHECK(model.ok());
    model_ = *std::move(model);
  }

  TuningJob Job() {
    TuningJob job{.model = "sum",
                  .version = 1,
                  .served = model_,
                  .tuners = {},
                  .recorder = metrics_,
                  .budget = absl::Seconds(10)};
    job.tuners.push_back(std::make_unique<ScriptedTuner>(script_));
    return job;
  }

  // A pass that takes so long.
  auto Pass(absl::Duration time, Tuned tuned) {
    return [this, time, tuned](MeasureGate&) -> StatusOr<Tuned> {
      clock_.Advance(time);
      return tuned;
    };
  }

  FakeClock clock_;
  Activity activity_;
  Script script_;
  const std::shared_ptr<TuningMetrics> metrics_ = std::make_shared<TuningMetrics>();
  std::shared_ptr<ServedModel> model_;
};

TEST_F(BackgroundTunerTest, ReplacesThePlanByABetterOne) {
  const auto better = std::make_shared<SumPlan>(0, 8, 3);
  script_.passes = {Pass(absl::Seconds(1), {.better = better, .gain = 0.1, .timed_now = 9})};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kDone);
  EXPECT_EQ(metrics_->replaced(), 1);
  EXPECT_EQ(model_->facts()->properties.at("swizzle_micro_batch"), "3");
}

TEST_F(BackgroundTunerTest, KnowsOfPlansThatATunerReplacesItself) {
  script_.passes = {Pass(absl::Seconds(1), {.replaced = 2, .gain = 0.1, .timed_now = 9})};
  BackgroundTuner tuner(activity_, clock_);
  TuningJob job = Job();
  tuner.TuneNow(std::move(job));
  metrics_->AwaitState(TuningState::kDone);
  EXPECT_EQ(metrics_->replaced(), 1);
}

TEST_F(BackgroundTunerTest, MeasuresAgainWhatWasSuspectLater) {
  script_.passes = {Pass(absl::Seconds(1), {.timed_now = 9, .suspect = 4}), Pass(absl::Seconds(1), {.timed_now = 4})};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kWaiting);
  while (metrics_->suspect() != 4) std::this_thread::yield();
  clock_.AwaitWaiters(1);
  EXPECT_THAT(script_.budgets, SizeIs(1));
  clock_.Advance(absl::Seconds(10));
  metrics_->AwaitState(TuningState::kDone);
  EXPECT_EQ(metrics_->suspect(), 0);
  EXPECT_THAT(script_.budgets, ElementsAre(absl::Seconds(6), absl::Seconds(9) * 0.6));
}

TEST_F(BackgroundTunerTest, TheBudgetEndsIt) {
  const Tuned disturbed = {.timed_now = 9, .suspect = 9};
  for (int pass = 0; pass < 100; ++pass) script_.passes.push_back(Pass(absl::Seconds(4), disturbed));
  BackgroundTuner tuner(activity_, clock_);
  tuner.TuneNow(Job());
  metrics_->AwaitState(TuningState::kDone);
  EXPECT_EQ(metrics_->suspect(), 9);
  EXPECT_EQ(metrics_->replaced(), 0);
  EXPECT_THAT(script_.budgets, SizeIs(3));
}

TEST_F(BackgroundTunerTest, APassBeyondItsBudgetLeavesLessForTheNext) {
  const Tuned disturbed = {.timed_now = 9, .suspect = 9};
  script_.passes = {Pass(absl::Seconds(7), disturbed), Pass(absl::Seconds(2), disturbed)};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kWaiting);
  while (metrics_->suspect() != 9) std::this_thread::yield();
  clock_.AwaitWaiters(1);
  clock_.Advance(absl::Seconds(10));
  metrics_->AwaitState(TuningState::kDone);
  // Given 6 s it took 7: of the 3 that are left one is for what the next exceeds its budget by.
  EXPECT_THAT(script_.budgets, ElementsAre(absl::Seconds(6), absl::Seconds(2) * 0.6));
}

TEST_F(BackgroundTunerTest, NoPassFollowsOneThatExceedsItByWhatIsLeft) {
  script_.passes = {Pass(absl::Seconds(8), {.timed_now = 9, .suspect = 9})};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kDone);
  EXPECT_THAT(script_.budgets, SizeIs(1));
}

TEST_F(BackgroundTunerTest, AnErrorLeavesThePlan) {
  script_.passes = {[](MeasureGate&) -> StatusOr<Tuned> { return absl::ResourceExhaustedError("no memory"); }};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kFailed);
  EXPECT_EQ(metrics_->replaced(), 0);
}

TEST_F(BackgroundTunerTest, WhatIsThrownEndsNothingElse) {
  script_.passes = {[](MeasureGate&) -> StatusOr<Tuned> { throw std::bad_alloc(); }, Pass(absl::Seconds(1), {})};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kFailed);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kDone);
}

TEST_F(BackgroundTunerTest, WhatIsThrownBesideMeasurementsEndsNothingElse) {
  script_.passes = {Pass(absl::Seconds(1), {})};
  metrics_->out_of_memory = true;
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kFailed);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kDone);
}

TEST_F(BackgroundTunerTest, StopsWhileRequestsKeepItWaiting) {
  activity_.Add(1);
  script_.passes = {[](MeasureGate& gate) -> StatusOr<Tuned> {
    SWIZZLE_RETURN_IF_ERROR(gate.Await());
    return Tuned();
  }};
  BackgroundTuner tuner(activity_, clock_);
  tuner.Add(Job());
  metrics_->AwaitState(TuningState::kMeasuring);
  tuner.RequestStop();  // and the destructor returns
}

}  // namespace
}  // namespace swizzle
