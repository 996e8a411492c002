#include "server/batching/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <string>
#include <thread>

#include "tests/server/batching/batcher_fixture.h"
#include "tests/support/process_limits.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(BatcherTest, ReturnsWhatTheSessionMade) {
  Start(ScriptedSpec(8));
  Outcome outcome;
  Submit(7, outcome, 2);
  const StatusOr<Result> result = outcome.Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_THAT(result->outputs, SizeIs(1));
  EXPECT_EQ(result->outputs[0].size(), 2 * sizeof(float));
  EXPECT_THAT(result->shapes, ElementsAre(Shape{2}));
  EXPECT_EQ(result->batch_rows, 2);
  EXPECT_EQ(result->input, absl::Microseconds(1));
  EXPECT_EQ(result->compute, absl::Microseconds(20));
  EXPECT_EQ(result->output, absl::Microseconds(3));
}

// Nothing is in such a tensor, but its other dimensions are whatever the client wrote.
TEST_P(BatcherTest, PositionsThatOverflowCountAsNone) {
  Start(ScriptedSpec(8));
  Request request = NumberedRequest(1);
  request.inputs[0].shape = {1, 0, std::numeric_limits<int64_t>::max(), 3};
  Outcome outcome;
  ASSERT_TRUE(batcher_->Submit(std::move(request), outcome.Callback()).ok());
  Finish();
  EXPECT_TRUE(outcome.Wait().ok());
  ASSERT_THAT(metrics_.batches, SizeIs(1));
  EXPECT_EQ(metrics_.batches[0].positions, 0);
}

TEST_P(BatcherTest, TakesTogetherWhatWasQueuedWhileBusy) {
  Start(ScriptedSpec(4));
  std::deque<Outcome> outcomes(6);
  Occupy(outcomes[0]);
  for (int i = 1; i < 6; ++i) Submit(i, outcomes[static_cast<size_t>(i)]);
  EXPECT_EQ(batcher_->queued(), 5);
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3, 4), ElementsAre(5)));
  for (Outcome& outcome : outcomes) EXPECT_EQ(outcome.calls(), 1);
}

TEST_P(BatcherTest, WithoutDynamicBatchingRequestsRunAlone) {
  ModelSpec spec = ScriptedSpec(4);
  spec.dynamic_batching = false;
  Start(spec);
  std::deque<Outcome> outcomes(3);
  Occupy(outcomes[0]);
  Submit(1, outcomes[1]);
  Submit(2, outcomes[2]);
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_P(BatcherTest, WaitsForTheDelayThatWasAskedFor) {
  ModelSpec spec = ScriptedSpec(8);
  spec.max_queue_delay = absl::Milliseconds(10);
  Start(spec);
  Outcome first, second;
  Submit(1, first);
  clock_.Advance(absl::Milliseconds(9));
  Submit(2, second);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(first.Wait()->queue, absl::Milliseconds(10));
  EXPECT_EQ(second.Wait()->queue, absl::Milliseconds(1));
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(1, 2)));
}

TEST_P(BatcherTest, ExecutorsRunAtTheSameTime) {
  ModelSpec spec = ScriptedSpec(1);
  spec.instance_count = 2;
  Start(spec);
  model_->Block();
  Outcome first, second;
  Submit(1, first);
  Submit(2, second);
  model_->AwaitStarted(2);
  EXPECT_EQ(first.calls() + second.calls(), 0);
  Finish();
}

TEST_P(BatcherTest, DeadlineEndsARequestWhileExecutorsAreBusy) {
  Start(ScriptedSpec(8));
  Outcome running, patient, late;
  Occupy(running);
  Submit(1, patient);
  Submit(2, late, 1, clock_.Now() + absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(late.WaitForCode(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(running.calls(), 0);
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kTimeout));
}

TEST_P(BatcherTest, AnEarlierDeadlineBehindALaterOneIsSeen) {
  Start(ScriptedSpec(8));
  Outcome running, later, earlier;
  Occupy(running);
  Submit(1, later, 1, clock_.Now() + absl::Milliseconds(50));
  Submit(2, earlier, 1, clock_.Now() + absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(earlier.WaitForCode(), StatusCode::kDeadlineExceeded);
  clock_.Advance(absl::Milliseconds(45));
  EXPECT_EQ(later.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
}

TEST_P(BatcherTest, DeadlineOfWhatABusyExecutorLeftBehind) {
  Start(ScriptedSpec(1));
  model_->Block();
  batcher_->HoldUntilQueued(2);
  Outcome first, second;
  Submit(1, first);
  Submit(2, second, 1, clock_.Now() + absl::Milliseconds(5));
  model_->AwaitStarted(1);
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(second.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
}

TEST_P(BatcherTest, DeadlineEndsARequestThatAnIdleExecutorWaitsWith) {
  ModelSpec spec = ScriptedSpec(8);
  spec.max_queue_delay = absl::Hours(1);
  Start(spec);
  Outcome outcome;
  Submit(1, outcome, 1, clock_.Now() + absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(outcome.WaitForCode(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(model_->batches(), IsEmpty());
}

TEST_P(BatcherTest, DeadlineThatHasPassedBeforeSubmit) {
  Start(ScriptedSpec(8));
  Outcome outcome;
  Submit(1, outcome, 1, clock_.Now());
  EXPECT_EQ(outcome.WaitForCode(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(model_->batches(), IsEmpty());
}

TEST_P(BatcherTest, DefaultTimeoutShortensDeadlines) {
  ModelSpec spec = ScriptedSpec(8);
  spec.queue_policy.default_timeout = absl::Milliseconds(5);
  Start(spec);
  Outcome running, none, later;
  Occupy(running);
  Submit(1, none);
  Submit(2, later, 1, clock_.Now() + absl::Hours(1));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(none.WaitForCode(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(later.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
}

TEST_P(BatcherTest, CancelEndsOnlyWhatIsQueued) {
  Start(ScriptedSpec(8));
  Outcome running, first, second;
  model_->Block();
  const Ticket running_ticket = Submit(0, running);
  model_->AwaitStarted(1);
  const Ticket first_ticket = Submit(1, first);
  Submit(2, second);

  batcher_->Cancel(first_ticket);
  EXPECT_EQ(first.WaitForCode(), StatusCode::kCancelled);
  batcher_->Cancel(running_ticket);
  EXPECT_EQ(running.calls(), 0);
  Finish();

  batcher_->Cancel(first_ticket);
  batcher_->Cancel(12345);
  EXPECT_EQ(first.calls(), 1);
  EXPECT_TRUE(running.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(2)));
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kCancelled));
}

TEST_P(BatcherTest, AFailedRunFailsItsBatchAlone) {
  Start(ScriptedSpec(8));
  Outcome running, first, second, after;
  Occupy(running);
  model_->EndWith(absl::InternalError("broken"));
  Submit(1, first);
  Submit(2, second);
  model_->Release();
  EXPECT_EQ(first.WaitForCode(), StatusCode::kInternal);
  EXPECT_EQ(second.Wait().status().message(), "broken");
  EXPECT_TRUE(running.Wait().ok());
  model_->EndWith(absl::OkStatus());
  Submit(3, after);
  EXPECT_TRUE(after.Wait().ok());
  batcher_->Drain();
  EXPECT_THAT(metrics_.batches, SizeIs(2));
  EXPECT_EQ(metrics_.inflight, 0);
}

TEST_P(BatcherTest, OfABatchThatFailedEachRequestRunsAgainAlone) {
  Start(ScriptedSpec(8));
  Outcome running, good, bad, other;
  Occupy(running);
  model_->FailWith(2);
  Submit(1, good);
  Submit(2, bad);
  Submit(3, other);
  Finish();
  EXPECT_TRUE(good.Wait().ok());
  EXPECT_EQ(bad.Wait().status().message(), "a bad request");
  EXPECT_TRUE(other.Wait().ok());
  EXPECT_EQ(other.Wait()->batch_rows, 1);
  EXPECT_THAT(model_->batches(),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3), ElementsAre(1), ElementsAre(2), ElementsAre(3)));
  ASSERT_THAT(metrics_.batches, SizeIs(3));
  EXPECT_EQ(metrics_.batches[1].reason, BatchReason::kRetry);
  EXPECT_EQ(metrics_.inflight, 0);
}

TEST_P(BatcherTest, AnExceptionEndsItsRequestAlone) {
  Start(ScriptedSpec(8));
  Outcome first, second;
  model_->ThrowOnce();
  Submit(1, first);
  EXPECT_EQ(first.WaitForCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(first.Wait().status().message(), "there is not enough memory to run the batch");
  Submit(2, second);
  EXPECT_TRUE(second.Wait().ok());
  batcher_->Drain();
  EXPECT_EQ(metrics_.inflight, 0);
}

TEST_P(BatcherTest, RecordsHowLongWhatNeverRanWasQueued) {
  Start(ScriptedSpec(8));
  Outcome running, late;
  Occupy(running);
  Submit(1, late, 1, clock_.Now() + absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(late.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
  EXPECT_THAT(metrics_.rejected_after, ElementsAre(absl::Milliseconds(5)));
}

TEST_P(BatcherTest, DrainFinishesWhatIsQueuedAndRefusesWhatComes) {
  Start(ScriptedSpec(1));
  Outcome running, waiting, extra, refused;
  Occupy(running);
  Submit(1, waiting);
  std::thread drain([&] { batcher_->Drain(); });
  Status status;
  for (int number = 2; status.ok(); ++number) {  // until Drain has begun
    const StatusOr<Ticket> ticket = batcher_->Submit(NumberedRequest(number), extra.Callback());
    if (ticket.ok()) batcher_->Cancel(*ticket);
    status = ticket.status();
    std::this_thread::yield();
  }
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  model_->Release();
  drain.join();
  EXPECT_EQ(running.calls(), 1);
  EXPECT_EQ(waiting.calls(), 1);
  EXPECT_EQ(batcher_->Submit(NumberedRequest(2), refused.Callback()).status().code(), StatusCode::kUnavailable);
  batcher_->Drain();
  EXPECT_EQ(refused.calls(), 0);
}

TEST_P(BatcherTest, DrainDoesNotSitOutADelay) {
  ModelSpec spec = ScriptedSpec(8);
  spec.max_queue_delay = absl::Hours(1);
  Start(spec);
  Outcome outcome;
  Submit(1, outcome);
  batcher_->Drain();
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_TRUE(outcome.Wait().ok());
}

TEST_P(BatcherTest, DestructionDrains) {
  Start(ScriptedSpec(8));
  batcher_->HoldUntilQueued(100);
  Outcome outcome;
  Submit(1, outcome);
  batcher_.reset();
  EXPECT_EQ(outcome.calls(), 1);
}

TEST_P(BatcherTest, HoldsOnce) {
  Start(ScriptedSpec(8));
  batcher_->HoldUntilQueued(3);
  std::deque<Outcome> outcomes(4);
  for (int i = 0; i < 3; ++i) Submit(i, outcomes[static_cast<size_t>(i)]);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(outcomes[static_cast<size_t>(i)].Wait()->batch_rows, 3);
  Submit(3, outcomes[3]);
  EXPECT_EQ(outcomes[3].Wait()->batch_rows, 1);
}

TEST_P(BatcherTest, WhatOneExecutorLeavesAnotherTakes) {
  constexpr size_t kThreads = 2;  // an executor's, and the one that rings alarms
  ModelSpec spec = ScriptedSpec(1);
  spec.instance_count = 2;
  Start(spec);
  model_->Block();
  batcher_->HoldUntilQueued(2);
  Outcome first, second;
  Submit(1, first);
  clock_.AwaitWaiters(kThreads);
  Submit(2, second);  // wakes one executor
  model_->AwaitStarted(2);
  Finish();
}

TEST_P(BatcherTest, DeadlineIsSeenOnceTheLastIdleExecutorIsBusy) {
  Start(ScriptedSpec(1));
  clock_.AwaitWaiters(2);  // the expiry thread is asleep with nothing to see to
  Outcome running, late;
  Occupy(running);
  Submit(1, late, 1, clock_.Now() + absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(late.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
}

TEST_P(BatcherTest, RecordsQueueBatchesAndBusyTime) {
  Start(ScriptedSpec(4));
  std::deque<Outcome> outcomes(3);
  Occupy(outcomes[0]);
  Submit(1, outcomes[1], 3);
  clock_.Advance(absl::Milliseconds(2));
  Submit(2, outcomes[2], 1);
  clock_.Advance(absl::Milliseconds(3));
  Finish();
  EXPECT_THAT(metrics_.batches,
              ElementsAre(BatchRecord{1, 1, 1, BatchReason::kIdle}, BatchRecord{2, 4, 4, BatchReason::kFull}));
  EXPECT_THAT(metrics_.queued, ElementsAre(absl::ZeroDuration(), absl::Milliseconds(5), absl::Milliseconds(3)));
  EXPECT_EQ(metrics_.depths, (std::vector<int64_t>{1, 0, 1, 2, 0}));
  EXPECT_EQ(metrics_.inflight, 0);
  EXPECT_EQ(metrics_.busy, absl::Milliseconds(5));
  EXPECT_THAT(metrics_.streams, ElementsAre(0));
}

TEST_P(BatcherTest, CountsPositionsWithoutChannels) {
  Start(ScriptedSpec(4));
  Outcome outcome;
  Request request = NumberedRequest(1, 2);
  request.inputs[0].shape = {2, 3, 5, 7};
  ASSERT_TRUE(batcher_->Submit(std::move(request), outcome.Callback()).ok());
  batcher_->Drain();
  EXPECT_THAT(metrics_.batches, ElementsAre(BatchRecord{1, 2, 2 * 5 * 7, BatchReason::kIdle}));
}

TEST_P(BatcherTest, CountsNoPositionsOfAnEmptyTensorOfHugeExtents) {
  Start(ScriptedSpec(4));
  Outcome outcome;
  Request request = NumberedRequest(1);
  request.inputs[0].shape = {1, 0, int64_t{1} << 40, int64_t{1} << 40};
  ASSERT_TRUE(batcher_->Submit(std::move(request), outcome.Callback()).ok());
  batcher_->Drain();
  EXPECT_THAT(metrics_.batches, ElementsAre(BatchRecord{1, 1, 0, BatchReason::kIdle}));
}

TEST_P(BatcherTest, WorksWithoutMetrics) {
  model_ = std::make_shared<ScriptedModel>(ScriptedSpec(4));
  StatusOr<std::unique_ptr<Batcher>> batcher = NewBatcher(model_, Clock::Real(), nullptr);
  ASSERT_TRUE(batcher.ok());
  Outcome outcome;
  ASSERT_TRUE((*batcher)->Submit(NumberedRequest(1), outcome.Callback()).ok());
  EXPECT_TRUE(outcome.Wait().ok());
}

TEST(NewBatcherTest, FailsWhereThereAreNoThreads) {
#ifdef SWIZZLE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer ends a process that can't start a thread";
#endif
  const NoMoreThreads none;
  const Status status = NewBatcher(std::make_shared<ScriptedModel>(ScriptedSpec(4)), Clock::Real(), nullptr).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "the system has no thread, memory or file left to start the model's executors");
}

TEST(NewBatcherTest, FailsWhereASessionDoes) {
  auto model = std::make_shared<ScriptedModel>(ScriptedSpec(4), absl::ResourceExhaustedError("no memory"));
  EXPECT_EQ(NewBatcher(model, Clock::Real(), nullptr).status().code(), StatusCode::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatcherTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu), KindName);

}  // namespace
}  // namespace swizzle
