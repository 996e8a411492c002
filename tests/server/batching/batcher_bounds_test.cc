// What a full queue refuses; admission_test.cc has the arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

#include "tests/server/batching/batcher_fixture.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BatcherBoundsTest : public BatcherTest {
 protected:
  // A batch of four rows, which takes a second, runs, and another one waits: a third would wait for both.
  void KeepBusyForTwoSeconds(std::deque<Outcome>& outcomes) {
    model_->Block();
    Submit(0, outcomes[0], 4);
    model_->AwaitStarted(1);
    clock_.Advance(absl::Seconds(1));
    model_->Release();
    EXPECT_TRUE(outcomes[0].Wait().ok());
    model_->Block();
    Submit(1, outcomes[1], 4);
    model_->AwaitStarted(2);
    Submit(2, outcomes[2], 4);
  }
};

TEST_P(BatcherBoundsTest, RefusesWhatTheQueueCannotHold) {
  ModelSpec spec = ScriptedSpec(1);
  spec.queue_policy.max_requests = 2;
  Start(spec);
  std::deque<Outcome> outcomes(4);
  Occupy(outcomes[0]);
  Submit(1, outcomes[1]);
  Submit(2, outcomes[2]);
  const Status status = batcher_->Submit(NumberedRequest(3), outcomes[3].Callback()).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("queue of model 'scripted' is full (2 requests)"));
  Finish();
  EXPECT_EQ(outcomes[3].calls(), 0);
  EXPECT_EQ(outcomes[2].calls(), 1);
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kQueueFull));
}

TEST_P(BatcherBoundsTest, BoundsTheQueueByRowsButForOneBatch) {
  ModelSpec spec = ScriptedSpec(4);
  spec.max_queue_rows = 6;
  Start(spec);
  std::deque<Outcome> outcomes(4);
  Occupy(outcomes[0]);
  Submit(1, outcomes[1], 4);
  Submit(2, outcomes[2], 2);
  const Status status = batcher_->Submit(NumberedRequest(3), outcomes[3].Callback()).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("queue of model 'scripted' is full (6 rows)"));
  Finish();
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kQueueFull));
}

TEST_P(BatcherBoundsTest, BoundsTheQueueByBytesButForOneRequest) {
  ModelSpec spec = ScriptedSpec(4);
  spec.max_queue_bytes = 8;
  Start(spec);
  std::deque<Outcome> outcomes(3);
  Occupy(outcomes[0]);
  Submit(1, outcomes[1], 4);
  const Status status = batcher_->Submit(NumberedRequest(2), outcomes[2].Callback()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("queue of model 'scripted' is full (16 bytes)"));
  Finish();
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kQueueFull));
}

TEST_P(BatcherBoundsTest, RefusesWhatWouldWaitTooLong) {
  ModelSpec spec = ScriptedSpec(4);
  spec.max_queue_wait = absl::Milliseconds(1900);
  Start(spec);
  std::deque<Outcome> outcomes(4);
  KeepBusyForTwoSeconds(outcomes);
  const Status late = batcher_->Submit(NumberedRequest(3), outcomes[3].Callback()).status();
  EXPECT_EQ(late.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(late.message()), HasSubstr("is full (a request would wait about 2000 ms)"));
  Finish();
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kExpectedWait));
}

TEST_P(BatcherBoundsTest, RefusesWhatCouldNotStartBeforeItsDeadline) {
  Start(ScriptedSpec(4));
  std::deque<Outcome> outcomes(4);
  KeepBusyForTwoSeconds(outcomes);
  Request hurried = NumberedRequest(3);
  hurried.deadline = clock_.Now() + absl::Seconds(1);
  const Status late = batcher_->Submit(std::move(hurried), outcomes[3].Callback()).status();
  EXPECT_THAT(std::string(late.message()), HasSubstr("2000 ms, longer than until its deadline"));
  Finish();
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kExpectedWait));
}

TEST_P(BatcherBoundsTest, TellsThatThereIsNoRoom) {
  ModelSpec spec = ScriptedSpec(1);
  spec.queue_policy.max_requests = 1;
  Start(spec);
  Outcome running, waiting;
  Occupy(running);
  EXPECT_TRUE(batcher_->CheckRoom(0, Instant::InfiniteFuture()).ok());
  Submit(1, waiting);
  EXPECT_EQ(batcher_->CheckRoom(0, Instant::InfiniteFuture()).code(), StatusCode::kResourceExhausted);
  Finish();
  EXPECT_EQ(batcher_->CheckRoom(0, Instant::InfiniteFuture()).code(), StatusCode::kUnavailable);
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kQueueFull, Rejection::kDraining));
}

TEST_P(BatcherBoundsTest, OneConnectionLeavesRoomForAnother) {
  ModelSpec spec = ScriptedSpec(1);
  spec.queue_policy.max_requests = 10;
  Start(spec);
  std::deque<Outcome> outcomes(12);
  Occupy(outcomes[0]);
  const auto submit = [&](int index, uint64_t connection) {
    Request request = NumberedRequest(index);
    request.connection = connection;
    return batcher_->Submit(std::move(request), outcomes[static_cast<size_t>(index)].Callback()).status();
  };
  for (int i = 1; i <= 9; ++i) EXPECT_TRUE(submit(i, 7).ok());
  EXPECT_EQ(batcher_->CheckRoom(7, Instant::InfiniteFuture()).code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(submit(10, 7).message()), HasSubstr("is full (9 requests, 9 of this connection; "));
  EXPECT_TRUE(submit(11, 8).ok());
  Finish();
  EXPECT_EQ(outcomes[11].calls(), 1);
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kConnectionShare, Rejection::kConnectionShare));
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatcherBoundsTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu), KindName);

}  // namespace
}  // namespace swizzle
