#include "server/batching/ensemble_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/mutex.h"
#include "tests/server/batching/batcher_fixture.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;

// Counts what a request takes, and refuses more than `most`.
class CountedBudget final : public RequestBudget {
 public:
  explicit CountedBudget(int64_t most) : most_(most) {}
  Status Add(int64_t bytes) override {
    const MutexLock lock(mutex_);
    if (bytes > most_ - held_) return absl::ResourceExhaustedError("no room");
    held_ += bytes;
    highest_ = std::max(highest_, held_);
    return absl::OkStatus();
  }
  int64_t held() {
    const MutexLock lock(mutex_);
    return held_;
  }
  int64_t highest() {
    const MutexLock lock(mutex_);
    return highest_;
  }

 private:
  const int64_t most_;
  Mutex mutex_;
  int64_t held_ ABSL_GUARDED_BY(mutex_) = 0, highest_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Models that answer their input, by name: `in` -> first -> `x`; `in` -> beside -> `y`; `x` -> last -> `out`.
class EnsembleBatcherTest : public ::testing::Test {
 protected:
  EnsembleBatcherTest() {
    spec_ = ScriptedSpec(4);
    spec_.name = "ensemble";
    spec_.inputs = {{"in", DType::kFloat32, {}}};
    spec_.outputs = {{"out", DType::kFloat32, {}}, {"y", DType::kFloat32, {}}};
    for (const std::string name : {"first", "beside", "last"}) {
      ModelSpec spec = ScriptedSpec(4);
      spec.name = name;
      if (name == "first") spec.queue_policy.max_requests = 1;
      models_.push_back(std::make_shared<ScriptedModel>(std::move(spec)));
      steps_.push_back(*NewBatcher(models_.back(), clock_, nullptr));
    }
    const std::vector<EnsembleStep> steps = {{"first", 0, {{"X", "in"}}, {{"Y", "x"}}},
                                             {"beside", 0, {{"X", "in"}}, {{"Y", "y"}}},
                                             {"last", 0, {{"X", "x"}}, {{"Y", "out"}}}};
    std::vector<const ModelSpec*> specs;
    std::vector<EnsembleMember> members;
    for (size_t i = 0; i < models_.size(); ++i) {
      specs.push_back(&models_[i]->spec());
      members.push_back({nullptr, models_[i].get(), steps_[i].get(), nullptr});
    }
    batcher_ = NewEnsembleBatcher(std::make_shared<ScriptedModel>(spec_), *ConnectSteps(spec_, steps, specs),
                                  std::move(members), clock_, &metrics_);
  }

  ScriptedModel& first() { return *models_[0]; }
  ScriptedModel& beside() { return *models_[1]; }
  ScriptedModel& last() { return *models_[2]; }

  Ticket Submit(int number, Outcome& outcome, RequestBudget* budget = nullptr) {
    Request request = NumberedRequest(number, 2);
    request.budget = budget;
    const StatusOr<Ticket> ticket = batcher_->Submit(std::move(request), outcome.Callback());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.value_or(0);
  }

  FakeClock clock_;
  RecordingMetrics metrics_;
  ModelSpec spec_;
  std::vector<std::shared_ptr<ScriptedModel>> models_;
  std::vector<std::unique_ptr<Batcher>> steps_;
  std::unique_ptr<Batcher> batcher_;
};

TEST_F(EnsembleBatcherTest, WhatAStepMakesIsReadByTheNext) {
  Outcome outcome;
  Submit(7, outcome);
  const StatusOr<Result> result = outcome.Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outputs[0], result->outputs[1]);
  EXPECT_THAT(result->shapes, ElementsAre(Shape{2}, Shape{2}));
  batcher_->Drain();
  for (const auto& model : models_) EXPECT_THAT(model->batches(), ElementsAre(ElementsAre(7)));
  EXPECT_THAT(metrics_.batches, ElementsAre(BatchRecord{1, 2, 0, BatchReason::kSingle}));
  EXPECT_EQ(metrics_.inflight, 0);
}

TEST_F(EnsembleBatcherTest, StepsThatNeedNothingOfEachOtherRunSideBySide) {
  Outcome outcome;
  first().Block();
  beside().Block();
  Submit(1, outcome);
  first().AwaitStarted(1);
  beside().AwaitStarted(1);
  first().Release();
  last().AwaitStarted(1);
  EXPECT_EQ(outcome.calls(), 0);
  beside().Release();
  EXPECT_TRUE(outcome.Wait().ok());
}

TEST_F(EnsembleBatcherTest, AFailedStepEndsTheRequestOnceAllThatRunsHasEnded) {
  Outcome outcome;
  first().FailWith(1);
  first().Block();
  beside().Block();
  Submit(1, outcome);
  first().AwaitStarted(1);
  beside().AwaitStarted(1);
  first().Release();
  steps_[0]->Drain();
  EXPECT_EQ(outcome.calls(), 0) << "its inputs are read";
  beside().Release();
  EXPECT_THAT(outcome.Wait().status(),
              IsError(StatusCode::kInvalidArgument, "step 1 of 'ensemble', model 'first': a bad request"));
  EXPECT_TRUE(last().batches().empty());
}

TEST_F(EnsembleBatcherTest, AFullQueueOfAStepRefusesTheRequest) {
  std::deque<Outcome> outcomes(3);
  first().Block();
  Submit(1, outcomes[0]);
  first().AwaitStarted(1);
  EXPECT_TRUE(batcher_->CheckRoom(1, Instant::InfiniteFuture()).ok());
  Submit(2, outcomes[1]);
  EXPECT_EQ(batcher_->CheckRoom(1, Instant::InfiniteFuture()).code(), StatusCode::kResourceExhausted);
  Submit(3, outcomes[2]);
  EXPECT_THAT(outcomes[2].Wait().status(), IsError(StatusCode::kResourceExhausted, "step 1 of 'ensemble'"));
  first().Release();
  EXPECT_TRUE(outcomes[0].Wait().ok());
  EXPECT_TRUE(outcomes[1].Wait().ok());
}

TEST_F(EnsembleBatcherTest, ACancelledRequestLeavesItsQueues) {
  Outcome running, queued;
  last().Block();
  Submit(1, running);
  last().AwaitStarted(1);
  const Ticket ticket = Submit(2, queued);
  while (steps_[2]->queued() == 0) std::this_thread::yield();
  batcher_->Cancel(ticket);
  EXPECT_EQ(queued.WaitForCode(), StatusCode::kCancelled);
  EXPECT_EQ(steps_[2]->queued(), 0);
  batcher_->Cancel(ticket);
  last().Release();
  EXPECT_TRUE(running.Wait().ok());
  batcher_->Drain();
  EXPECT_THAT(last().batches(), ElementsAre(ElementsAre(1)));
}

TEST_F(EnsembleBatcherTest, ACancelledRequestBeginsNoFurtherStep) {
  Outcome outcome;
  first().Block();
  const Ticket ticket = Submit(1, outcome);
  first().AwaitStarted(1);
  batcher_->Cancel(ticket);
  first().Release();
  EXPECT_EQ(outcome.WaitForCode(), StatusCode::kCancelled);
  batcher_->Drain();
  EXPECT_TRUE(last().batches().empty());
}

TEST_F(EnsembleBatcherTest, TensorsBetweenStepsCountUntilTheyAreRead) {
  CountedBudget budget(8), small(7);
  Outcome outcome, refused;
  last().Block();
  Submit(1, outcome, &budget);
  last().AwaitStarted(1);
  EXPECT_EQ(budget.held(), 8) << "two rows of FP32";
  last().Release();
  EXPECT_TRUE(outcome.Wait().ok());
  EXPECT_EQ(budget.held(), 0);
  EXPECT_EQ(budget.highest(), 8) << "outputs count as the answer's";
  Submit(2, refused, &small);
  EXPECT_THAT(refused.Wait().status(), IsError(StatusCode::kResourceExhausted, "no room"));
}

TEST_F(EnsembleBatcherTest, ADrainWaitsForAllSteps) {
  Outcome outcome, late;
  first().Block();
  Submit(1, outcome);
  first().AwaitStarted(1);
  std::thread release([&] { first().Release(); });
  batcher_->Drain();
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_TRUE(outcome.Wait().ok());
  EXPECT_EQ(batcher_->Submit(NumberedRequest(2), late.Callback()).status().code(), StatusCode::kUnavailable);
  release.join();
}

TEST_F(EnsembleBatcherTest, ManyRequestsFromManyThreads) {
  constexpr int kThreads = 4, kRequests = 200;
  for (const auto& model : models_) model->RunAtOnce();
  std::deque<Outcome> outcomes(kThreads * kRequests);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        Outcome& outcome = outcomes[static_cast<size_t>(t * kRequests + i)];
        const Ticket ticket = Submit(i, outcome);
        if (i % 7 == 0) batcher_->Cancel(ticket);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  batcher_->Drain();
  for (Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls(), 1);
  EXPECT_EQ(metrics_.inflight, 0);
}

}  // namespace
}  // namespace swizzle
