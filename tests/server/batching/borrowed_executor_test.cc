// Short batches run on the thread that has queued their first request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "tests/server/batching/batcher_fixture.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Its model has run one batch, request 0, on its executor.
class BorrowedExecutorTest : public BatcherTest {
 protected:
  void StartAtOnce(ModelSpec spec, absl::Duration takes = absl::Microseconds(10)) {
    Start(std::move(spec));
    model_->RunAtOnce();
    model_->Do([this, takes] { clock_.Advance(takes); });
    RunOne(0);
  }
  // Returns once the executor's thread, if it was that, sleeps again; the one that rings alarms always does.
  void RunOne(int number) {
    Outcome outcome;
    Submit(number, outcome);
    EXPECT_TRUE(outcome.Wait().ok());
    clock_.AwaitWaiters(2);
  }
  // Whether the last batch ran here.
  bool RanHere() const { return model_->threads().back() == std::this_thread::get_id(); }
};

TEST_P(BorrowedExecutorTest, AShortBatchRunsWhereItWasSubmitted) {
  StartAtOnce(ScriptedSpec(8));
  EXPECT_FALSE(RanHere()) << "nothing was known yet";
  Outcome outcome;
  Submit(1, outcome);
  EXPECT_EQ(outcome.calls(), 1) << "before Submit returned";
  EXPECT_TRUE(RanHere());
  EXPECT_EQ(outcome.Wait()->queue, absl::ZeroDuration());
  batcher_->Drain();
  EXPECT_THAT(metrics_.batches, SizeIs(2));
  EXPECT_EQ(metrics_.inflight, 0);
  EXPECT_EQ(metrics_.depths.back(), 0);
}

TEST_P(BorrowedExecutorTest, ALongBatchDoesNot) {
  StartAtOnce(ScriptedSpec(8), absl::Microseconds(51));
  RunOne(1);
  EXPECT_FALSE(RanHere());
}

TEST_P(BorrowedExecutorTest, ABatchThatWasHeldUpChangesNothing) {
  StartAtOnce(ScriptedSpec(8));
  for (int i = 1; i < 10; ++i) RunOne(i);
  model_->Do([this] { clock_.Advance(absl::Milliseconds(4)); });
  RunOne(10);
  EXPECT_TRUE(RanHere());
  model_->Do(nullptr);
  RunOne(11);
  EXPECT_TRUE(RanHere());
  model_->Do([this] { clock_.Advance(absl::Milliseconds(4)); });
  for (int i = 12; i < 15; ++i) RunOne(i);
  EXPECT_FALSE(RanHere()) << "but several do";
}

// Its eight rows take a millisecond together, a single one more than a moment.
TEST_P(BorrowedExecutorTest, NorDoesOneRowOfAModelWhoseFullBatchesAreLong) {
  Start(ScriptedSpec(8));
  model_->RunAtOnce();
  model_->Do([this] { clock_.Advance(absl::Milliseconds(1)); });
  batcher_->HoldUntilQueued(8);
  std::deque<Outcome> full(8);
  for (int i = 0; i < 8; ++i) Submit(i, full[static_cast<size_t>(i)]);
  for (Outcome& outcome : full) EXPECT_TRUE(outcome.Wait().ok());
  clock_.AwaitWaiters(2);
  EXPECT_THAT(model_->batches(), SizeIs(1));
  RunOne(8);
  EXPECT_FALSE(RanHere());
}

TEST_P(BorrowedExecutorTest, NorDoesOneThatMayWait) {
  Start(ScriptedSpec(8));
  RunOne(0);
  RunOne(1);
  EXPECT_FALSE(RanHere());
}

TEST_P(BorrowedExecutorTest, NorDoesOneThatWaitsForOthers) {
  ModelSpec spec = ScriptedSpec(8);
  spec.max_queue_delay = absl::Milliseconds(1);
  spec.preferred_batch_sizes = {1};
  StartAtOnce(spec);
  RunOne(1);
  EXPECT_FALSE(RanHere());
}

TEST_P(BorrowedExecutorTest, WhatOthersSubmitMeanwhileRunsThereToo) {
  StartAtOnce(ScriptedSpec(8));
  model_->Block();
  Outcome first, second, third;
  std::thread borrower([&] { Submit(1, first); });
  const std::thread::id its = borrower.get_id();
  model_->AwaitStarted(2);
  Submit(2, second);
  Submit(3, third);
  EXPECT_EQ(batcher_->queued(), 2);
  model_->Release();
  borrower.join();
  EXPECT_EQ(first.calls() + second.calls() + third.calls(), 3);
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2, 3)));
  EXPECT_EQ(model_->threads().back(), its);
}

TEST_P(BorrowedExecutorTest, AThreadIsBorrowedForAMomentOnly) {
  StartAtOnce(ScriptedSpec(8), absl::Microseconds(40));
  // Each answer brings the next request, as of a client that waits for nothing.
  constexpr int kRequests = 20;
  std::deque<Outcome> outcomes(kRequests);
  std::function<void(int)> submit = [&](int i) {
    const auto ticket = batcher_->Submit(NumberedRequest(i + 1), [&, i](StatusOr<Result> result) {
      if (i + 1 < kRequests) submit(i + 1);
      outcomes[static_cast<size_t>(i)].Callback()(std::move(result));
    });
    EXPECT_TRUE(ticket.ok());
  };
  submit(0);
  EXPECT_TRUE(outcomes.back().Wait().ok());
  const auto threads = model_->threads();
  EXPECT_EQ(std::ranges::count(threads, std::this_thread::get_id()), 2) << "100 us";
  EXPECT_THAT(threads, SizeIs(kRequests + 1));
}

TEST_P(BorrowedExecutorTest, DeadlinesAreSeenMeanwhile) {
  StartAtOnce(ScriptedSpec(8));
  model_->Block();
  Outcome first, late;
  std::thread borrower([&] { Submit(1, first); });
  model_->AwaitStarted(2);
  Submit(2, late, 1, clock_.Now() + absl::Milliseconds(5));
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(late.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
  borrower.join();
}

TEST_P(BorrowedExecutorTest, AFailedBatchFailsAlone) {
  StartAtOnce(ScriptedSpec(8));
  model_->ThrowOnce();
  Outcome bad, good;
  Submit(1, bad);
  EXPECT_EQ(bad.WaitForCode(), StatusCode::kResourceExhausted);
  EXPECT_EQ(bad.calls(), 1);
  Submit(2, good);
  EXPECT_TRUE(good.Wait().ok());
}

TEST_P(BorrowedExecutorTest, OneOfSeveralExecutorsIsNotBorrowed) {
  ModelSpec spec = ScriptedSpec(8);
  spec.instance_count = 2;
  StartAtOnce(spec);
  RunOne(1);
  EXPECT_FALSE(RanHere());
}

INSTANTIATE_TEST_SUITE_P(Kinds, BorrowedExecutorTest, ::testing::Values(InstanceKind::kCpu), KindName);

}  // namespace
}  // namespace swizzle
