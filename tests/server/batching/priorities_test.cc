// Levels of priority and what becomes of late requests: first the policy, then batchers that go by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "server/batching/batch_policy.h"
#include "tests/server/batching/batcher_fixture.h"
#include "tests/server/batching/decided.h"

namespace swizzle {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- The policy ----

Instant MomentAt(int ms) { return Instant() + absl::Milliseconds(ms); }

struct PriorityItem {
  int level = 1;
  int rows = 1;
  int arrival = 0;
  bool late = false;
  int batch_class = 0;
};

std::vector<Queued> QueueOf(const std::vector<PriorityItem>& items) {
  std::vector<Queued> queue;
  for (const PriorityItem& item : items) {
    Queued& request = queue.emplace_back();
    request.rows = item.rows;
    request.arrival = MomentAt(item.arrival);
    request.level = item.level;
    request.batch_class = static_cast<uint64_t>(item.batch_class);
    if (item.late) request.late_at = MomentAt(item.arrival);
  }
  return queue;
}

Decided DecideOf(const std::vector<PriorityItem>& items, Limits limits, const std::vector<int>& passed = {}) {
  limits.lanes = 6;  // three levels
  return DecideOn(QueueOf(items), MomentAt(100), limits, passed);
}

TEST(DecideByPriority, TheFirstLevelGoesFirst) {
  EXPECT_THAT(DecideOf({{3}, {2}, {1}, {1}}, {.max_rows = 2}).take, ElementsAre(2, 3));
  EXPECT_THAT(DecideOf({{3}, {2}, {3}}, {.max_rows = 1}).take, ElementsAre(1));
  EXPECT_THAT(DecideOf({{3}, {2}, {1}}, {.max_rows = 0}).take, ElementsAre(2)) << "without batching, too";
}

TEST(DecideByPriority, WhatRoomIsLeftGoesToOthersInTheirOrder) {
  EXPECT_THAT(DecideOf({{3}, {2}, {1}, {2}}, {.max_rows = 3}).take, ElementsAre(1, 2, 3));
  EXPECT_THAT(DecideOf({{3}, {2, 4}, {1}}, {.max_rows = 4}).take, ElementsAre(2))
      << "what doesn't fit closes the batch";
}

TEST(DecideByPriority, WhatIsLateGoesBehindTheOthersOfItsLevel) {
  EXPECT_THAT(DecideOf({{1, 1, 0, true}, {2}, {1}}, {.max_rows = 1}).take, ElementsAre(2));
  EXPECT_THAT(DecideOf({{1, 1, 0, true}, {2}}, {.max_rows = 1}).take, ElementsAre(0)) << "and before other levels";
}

TEST(DecideByPriority, ClassesShareNoBatch) {
  EXPECT_THAT(DecideOf({{2, 1, 0, false, 7}, {1, 1, 0, false, 8}, {2, 1, 0, false, 8}}, {.max_rows = 4}).take,
              ElementsAre(1, 2));
}

// A batch waits for no more than the delay of the request that came first, whatever its level.
TEST(DecideByPriority, TheDelayIsTheOldestRequests) {
  const Limits delayed = {.max_rows = 8, .max_delay = absl::Milliseconds(10)};
  EXPECT_THAT(DecideOf({{2, 1, 90}, {1, 1, 99}}, delayed).take, ElementsAre(0, 1));
  const Decided waits = DecideOf({{2, 1, 95}, {1, 1, 99}}, delayed);
  EXPECT_THAT(waits.take, IsEmpty());
  EXPECT_EQ(waits.wake, MomentAt(105));
}

TEST(DecideByPriority, CountsHowOftenALaneWasPassedOver) {
  const Decided first = DecideOf({{1}, {2}, {3}}, {.max_rows = 1}, {});
  EXPECT_THAT(first.passed, ElementsAre(0, 0, 1, 0, 1, 0));
  const Decided second = DecideOf({{1}, {2}, {3}}, {.max_rows = 1}, first.passed);
  EXPECT_THAT(second.passed, ElementsAre(0, 0, 2, 0, 2, 0));
  // What is taken along was not passed over, and what does not wait has nothing to be counted.
  EXPECT_THAT(DecideOf({{1}, {2}, {2}}, {.max_rows = 2}, second.passed).passed, ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(DecideByPriority, ALaneThatWasPassedOverOftenBeginsTheBatch) {
  const std::vector<PriorityItem> queue = {{1}, {2}, {3}};
  EXPECT_THAT(DecideOf(queue, {.max_rows = 1}, {0, 0, 8, 0, 8, 0}).take, ElementsAre(0));
  EXPECT_THAT(DecideOf(queue, {.max_rows = 1}, {0, 0, 9, 0, 9, 0}).take, ElementsAre(1)) << "of equals the first";
  EXPECT_THAT(DecideOf(queue, {.max_rows = 1}, {1, 0, 9, 0, 10, 0}).take, ElementsAre(2)) << "else who waits longest";
  EXPECT_THAT(DecideOf(queue, {.max_rows = 2}, {1, 0, 0, 0, 10, 0}).take, ElementsAre(0, 2)) << "the first comes along";
}

// Requests of all lanes come without end: each lane begins a batch as often as the header promises.
TEST(DecideByPriority, NoLaneStarves) {
  std::vector<PriorityItem> queue;
  for (int level = 1; level <= 3; ++level) {
    queue.push_back({level});
    queue.push_back({level, 1, 0, true});
  }
  std::vector<int> passed;
  std::vector<int> since(queue.size()), longest(queue.size());
  for (int i = 0; i < 1000; ++i) {
    const Decided decision = DecideOf(queue, {.max_rows = 1}, passed);
    ASSERT_EQ(decision.take.size(), 1u);
    for (size_t lane = 0; lane < queue.size(); ++lane) {
      since[lane] = lane == decision.take[0] ? 0 : since[lane] + 1;
      longest[lane] = std::max(longest[lane], since[lane]);
    }
    passed = decision.passed;
  }
  EXPECT_THAT(longest, Each(::testing::Lt(kMostPassed + 6)));
  EXPECT_LT(longest[0], 6);
}

TEST(LimitsOfTest, LanesAreOfLevelsAndOfWhatMayBeLate) {
  ModelSpec spec;
  EXPECT_EQ(LimitsOf(spec).lanes, 1u);
  spec.queue_policy.delays_late = true;
  EXPECT_EQ(LimitsOf(spec).lanes, 2u);
  spec.queue_policy.delays_late = false;
  spec.priority_levels = 3;
  EXPECT_EQ(LimitsOf(spec).lanes, 6u);
}

// ---- Batchers ----

class PrioritiesTest : public BatcherTest {
 protected:
  static ModelSpec SpecOf(int levels, int64_t max_batch_size = 1) {
    ModelSpec spec = ScriptedSpec(max_batch_size);
    spec.priority_levels = levels;
    return spec;
  }
  Status SubmitAt(int level, int number, uint64_t connection = 0) {
    Request request = NumberedRequest(number);
    request.level = level;
    request.connection = connection;
    return batcher_->Submit(std::move(request), outcomes_.emplace_back().Callback()).status();
  }

  std::deque<Outcome> outcomes_;
};

TEST_P(PrioritiesTest, RequestsRunInTheOrderOfTheirLevels) {
  Start(SpecOf(3));
  Occupy(outcomes_.emplace_back());
  for (const int number : {31, 21, 11, 32, 12}) EXPECT_TRUE(SubmitAt(number / 10, number).ok());
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(11), ElementsAre(12), ElementsAre(21),
                                             ElementsAre(31), ElementsAre(32)));
}

TEST_P(PrioritiesTest, OneBatchInTenIsOfWhatWaitsBehind) {
  Start(SpecOf(2));
  Occupy(outcomes_.emplace_back());
  EXPECT_TRUE(SubmitAt(2, 200).ok());
  EXPECT_TRUE(SubmitAt(2, 201).ok());
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(SubmitAt(1, 100 + i).ok());
  Finish();
  const auto batches = model_->batches();
  ASSERT_EQ(batches.size(), 28u);
  EXPECT_THAT(batches[1 + 9], ElementsAre(200));
  EXPECT_THAT(batches[1 + 19], ElementsAre(201));
}

TEST_P(PrioritiesTest, EachLevelRefusesExactlyTheExcess) {
  ModelSpec spec = SpecOf(2);
  spec.queue_policy.max_requests = 2;
  spec.level_policies[2].max_requests = 3;
  Start(spec);
  Occupy(outcomes_.emplace_back());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SubmitAt(2, 20 + i).ok());
  EXPECT_THAT(std::string(SubmitAt(2, 23).message()),
              HasSubstr("queue of model 'scripted' is full (3 requests of priority 2)"));
  EXPECT_TRUE(batcher_->CheckRoom(0, Instant::InfiniteFuture()).ok()) << "the first level has room";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(SubmitAt(1, 10 + i).ok());
  EXPECT_THAT(std::string(SubmitAt(1, 12).message()), HasSubstr("is full (2 requests of priority 1)"));
  EXPECT_EQ(batcher_->queued(), 5);
  Finish();
  EXPECT_EQ(batcher_->queued(), 0);
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kQueueFull, Rejection::kQueueFull));
}

// Rows, bytes, the expected wait and what a connection has count with what is served before.
TEST_P(PrioritiesTest, WhatWaitsBehindTakesNothingFromTheFirst) {
  ModelSpec spec = SpecOf(2);
  spec.max_queue_rows = 3;
  Start(spec);
  Occupy(outcomes_.emplace_back());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SubmitAt(2, 20 + i).ok());
  EXPECT_THAT(std::string(SubmitAt(2, 23).message()), HasSubstr("is full (3 rows)"));
  EXPECT_TRUE(SubmitAt(1, 10, 7).ok());
  EXPECT_TRUE(SubmitAt(1, 11, 7).ok());
  EXPECT_THAT(std::string(SubmitAt(2, 24).message()), HasSubstr("is full (5 rows)"));
  Finish();
}

TEST_P(PrioritiesTest, WhatIsLateWaitsBehindOthersUntilItsDeadline) {
  ModelSpec spec = SpecOf(1);
  spec.queue_policy = {.default_timeout = absl::Milliseconds(5), .delays_late = true};
  Start(spec);
  Occupy(outcomes_.emplace_back());
  EXPECT_TRUE(SubmitAt(1, 1).ok());
  Outcome ends;
  Submit(2, ends, 1, clock_.Now() + absl::Milliseconds(7));
  clock_.Advance(absl::Milliseconds(6));
  EXPECT_TRUE(SubmitAt(1, 3).ok());
  EXPECT_EQ(batcher_->queued(), 3) << "nothing has ended";
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(ends.WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(3), ElementsAre(1)));
}

TEST_P(PrioritiesTest, ALevelsPolicyIsItsOwn) {
  ModelSpec spec = SpecOf(2);
  spec.level_policies[2].default_timeout = absl::Milliseconds(5);
  Start(spec);
  Occupy(outcomes_.emplace_back());
  EXPECT_TRUE(SubmitAt(1, 1).ok());
  EXPECT_TRUE(SubmitAt(2, 2).ok());
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(outcomes_[2].WaitForCode(), StatusCode::kDeadlineExceeded);
  Finish();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

// The number that waits is exact as requests come, are cancelled, end late and run.
TEST_P(PrioritiesTest, TheNumberThatWaitsIsExact) {
  ModelSpec spec = SpecOf(2, 2);
  spec.queue_policy.max_requests = 3;
  Start(spec);
  Occupy(outcomes_.emplace_back());
  Outcome cancelled, late;
  const Ticket ticket = Submit(1, cancelled);
  Submit(2, late, 1, clock_.Now() + absl::Milliseconds(5));
  EXPECT_TRUE(SubmitAt(1, 3).ok());
  EXPECT_TRUE(SubmitAt(2, 4).ok());
  EXPECT_EQ(batcher_->queued(), 4);
  EXPECT_FALSE(SubmitAt(1, 5).ok());
  batcher_->Cancel(ticket);
  EXPECT_EQ(batcher_->queued(), 3);
  EXPECT_TRUE(SubmitAt(1, 6).ok()) << "a cancelled request leaves its place";
  clock_.Advance(absl::Milliseconds(5));
  EXPECT_EQ(late.WaitForCode(), StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(SubmitAt(1, 7).ok()) << "and so does one that ended";
  EXPECT_EQ(batcher_->queued(), 4);
  Finish();
  EXPECT_EQ(batcher_->queued(), 0);
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(0), ElementsAre(3, 6), ElementsAre(4, 7)));
  EXPECT_EQ(metrics_.depths.back(), 0);
  EXPECT_EQ(metrics_.inflight, 0);
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kQueueFull, Rejection::kCancelled, Rejection::kTimeout));
}

INSTANTIATE_TEST_SUITE_P(Kinds, PrioritiesTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu), KindName);

}  // namespace
}  // namespace swizzle
