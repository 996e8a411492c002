#include "server/batching/cached_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "tests/server/batching/batcher_fixture.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

class CachedBatcherTest : public BatcherTest {
 protected:
  void StartCached(ModelSpec spec) {
    Start(std::move(spec));
    batcher_ = NewCachedBatcher(std::move(batcher_), cache_, clock_, &metrics_);
  }

  const std::shared_ptr<ResponseCache> cache_ = std::make_shared<ResponseCache>(1 << 20);
};

TEST_P(CachedBatcherTest, WhatWasAskedBeforeIsAnsweredAtOnce) {
  StartCached(ScriptedSpec(4));
  Outcome first, again, other;
  Submit(1, first, 2);
  EXPECT_TRUE(first.Wait().ok());
  model_->Block();
  Submit(2, other);
  model_->AwaitStarted(2);
  const Ticket ticket = Submit(1, again, 2);
  EXPECT_EQ(again.calls(), 1) << "before Submit returned, while the executor is busy";
  batcher_->Cancel(ticket);
  const StatusOr<Result> answer = again.Wait();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->outputs, first.Wait()->outputs);
  EXPECT_EQ(answer->shapes, first.Wait()->shapes);
  EXPECT_EQ(answer->compute, absl::ZeroDuration());
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(metrics_.lookups, ElementsAre(CacheLookup::kMiss, CacheLookup::kMiss, CacheLookup::kHit));
}

TEST_P(CachedBatcherTest, AFullQueueRefusesOnlyWhatIsNew) {
  ModelSpec spec = ScriptedSpec(1);
  spec.queue_policy.max_requests = 1;
  StartCached(std::move(spec));
  std::deque<Outcome> outcomes(4);
  Submit(1, outcomes[0]);
  EXPECT_TRUE(outcomes[0].Wait().ok());
  model_->Block();
  Submit(2, outcomes[1]);
  model_->AwaitStarted(2);
  Submit(3, outcomes[2]);
  EXPECT_TRUE(batcher_->CheckRoom(0, Instant::InfiniteFuture()).ok());
  Submit(1, outcomes[3]);
  EXPECT_TRUE(outcomes[3].Wait().ok());
  EXPECT_EQ(batcher_->Submit(NumberedRequest(4), outcomes[3].Callback()).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(batcher_->queued(), 1);
  Finish();
}

TEST_P(CachedBatcherTest, ErrorsAreNotKept) {
  StartCached(ScriptedSpec(1));
  Outcome fails, runs;
  model_->FailWith(1);
  Submit(1, fails);
  EXPECT_FALSE(fails.Wait().ok());
  model_->FailWith(-1);
  Submit(1, runs);
  EXPECT_TRUE(runs.Wait().ok());
  Finish();
}

TEST_P(CachedBatcherTest, ADrainRefusesWhatIsKnownToo) {
  StartCached(ScriptedSpec(1));
  Outcome first;
  Submit(1, first);
  EXPECT_TRUE(first.Wait().ok());
  Finish();
  EXPECT_EQ(batcher_->Submit(NumberedRequest(1), first.Callback()).status().code(), StatusCode::kUnavailable);
}

TEST_P(CachedBatcherTest, AnswersGoWithTheModel) {
  StartCached(ScriptedSpec(1));
  Outcome first;
  Submit(1, first);
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_GT(cache_->bytes(), 0);
  batcher_ = nullptr;
  EXPECT_EQ(cache_->bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CachedBatcherTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu), KindName);

}  // namespace
}  // namespace swizzle
