#include "server/batching/batch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>

#include "tests/server/batching/decided.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

// Milliseconds after the start of the world; kNever is the infinite future.
constexpr int kNever = -1;
Instant At(int ms) { return ms == kNever ? Instant::InfiniteFuture() : Instant() + absl::Milliseconds(ms); }

struct Item {
  int rows = 1;
  int arrival = 0;
  int deadline = kNever;
  int tokens = 0;
  int batch_class = 0;
};

struct Case {
  std::string name;
  std::vector<Item> queue;
  int now = 0;
  Limits limits;
  std::vector<size_t> expired;
  size_t take = 0;
  BatchReason reason = BatchReason::kIdle;
  int wake = kNever;                // compared where take is 0
  std::vector<size_t> places = {};  // that are taken; none: the first so many
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Limits Rows(int64_t max_rows) { return {.max_rows = max_rows}; }
Limits Delayed(int64_t max_rows, int delay_ms, std::vector<int64_t> preferred = {}) {
  return {.max_rows = max_rows, .max_delay = absl::Milliseconds(delay_ms), .preferred_rows = std::move(preferred)};
}
Limits Tokens(int64_t max_rows, int64_t max_tokens) { return {.max_rows = max_rows, .max_tokens = max_tokens}; }
Limits Held(int64_t max_rows, size_t count) { return {.max_rows = max_rows, .hold_until = count}; }

Item Of(int batch_class, int rows = 1, int arrival = 0) { return {rows, arrival, kNever, 0, batch_class}; }

std::vector<Case> Cases() {
  using R = BatchReason;
  return {
      // Continuous batching.
      {"EmptyQueueSleeps", {}, 0, Rows(8), {}, 0},
      {"IdleTakesWhatIsThere", {{1}, {1}, {1}}, 0, Rows(8), {}, 3, R::kIdle},
      {"FullAtExactlyTheBudget", {{4}, {4}, {1}}, 0, Rows(8), {}, 2, R::kFull},
      {"LastRequestFillsTheBudget", {{7}, {1}}, 0, Rows(8), {}, 2, R::kFull},
      {"NeverSplitsARequest", {{5}, {4}, {1}}, 0, Rows(8), {}, 1, R::kFull},
      {"NeverOvertakes", {{5}, {4}, {3}}, 0, Rows(8), {}, 1, R::kFull},
      {"OneRequestOfTheWholeBudget", {{8}}, 0, Rows(8), {}, 1, R::kFull},
      {"OneRowBudget", {{1}, {1}}, 0, Rows(1), {}, 1, R::kFull},
      // A budget of tokens.
      {"TokensCloseTheBatch", {{1, 0, kNever, 60}, {1, 0, kNever, 50}}, 0, Tokens(8, 100), {}, 1, R::kFull},
      {"FullAtExactlyTheTokens", {{1, 0, kNever, 60}, {1, 0, kNever, 40}, {1}}, 0, Tokens(8, 100), {}, 2, R::kFull},
      {"TokensToSpare", {{1, 0, kNever, 60}, {1, 0, kNever, 30}}, 0, Tokens(8, 100), {}, 2, R::kIdle},
      {"RowsCloseBeforeTokens", {{5, 0, kNever, 5}, {4, 0, kNever, 4}}, 0, Tokens(8, 100), {}, 1, R::kFull},
      // Batching off.
      {"SingleTakesOne", {{1}, {1}}, 0, Rows(0), {}, 1, R::kSingle},
      {"SingleIgnoresTheDelay", {{1}}, 0, Delayed(0, 10), {}, 1, R::kSingle},
      {"SingleTakesAnyRows", {{7}, {1}}, 0, Rows(0), {}, 1, R::kSingle},
      {"SingleWithNothingQueued", {}, 0, Rows(0), {}, 0},
      // Deadlines.
      {"ExpiredLeavesFirst", {{1, 0, 5}, {1, 0, 9}}, 5, Rows(8), {0}, 1, R::kIdle},
      {"DeadlineStillToCome", {{1, 0, 6}}, 5, Rows(8), {}, 1, R::kIdle},
      {"AllExpired", {{1, 0, 1}, {1, 0, 2}}, 5, Rows(8), {0, 1}, 0},
      {"ExpiredInTheMiddle", {{1}, {1, 0, 2}, {1}}, 5, Rows(8), {1}, 2, R::kIdle},
      {"ExpiredRowsMakeRoom", {{6, 0, 1}, {5}, {3}}, 5, Rows(8), {0}, 2, R::kFull},
      {"SingleTakesTheFirstLive", {{1, 0, 1}, {1}, {1}}, 5, Rows(0), {0}, 1, R::kSingle},
      // A delay that was asked for.
      {"DelayWaitsForTheOldest", {{1, 2}, {1, 4}}, 5, Delayed(8, 10), {}, 0, R::kIdle, 12},
      {"DelayOver", {{1, 2}, {1, 4}}, 12, Delayed(8, 10), {}, 2, R::kDelay},
      {"BudgetEndsTheDelay", {{4, 2}, {4, 4}}, 5, Delayed(8, 10), {}, 2, R::kFull},
      {"MisfitEndsTheDelay", {{4, 2}, {5, 4}}, 5, Delayed(8, 10), {}, 1, R::kFull},
      {"WakesForADeadlineFirst", {{1, 2, 7}, {1, 4, 6}}, 5, Delayed(8, 10), {}, 0, R::kIdle, 6},
      {"DelayCountsFromTheOldestLive", {{1, 0, 1}, {1, 4}}, 5, Delayed(8, 10), {0}, 0, R::kIdle, 14},
      {"DelayedEmptyQueue", {}, 5, Delayed(8, 10), {}, 0},
      {"PreferredEndsTheDelay", {{2, 2}, {2, 3}}, 5, Delayed(8, 10, {4}), {}, 2, R::kPreferred},
      {"LargestPreferredWins", {{2}, {2}, {2}, {1}}, 5, Delayed(8, 10, {4, 6}), {}, 3, R::kPreferred},
      {"BelowPreferredWaits", {{3, 2}}, 5, Delayed(8, 10, {4}), {}, 0, R::kIdle, 12},
      {"BeyondPreferredWaitsForNothing", {{3, 2}, {3, 3}}, 5, Delayed(8, 10, {4}), {}, 2, R::kPreferred},
      {"BetweenPreferredSizesWaits", {{3, 2}, {3, 3}}, 5, Delayed(16, 10, {4, 8}), {}, 0, R::kIdle, 12},
      {"FullBeatsPreferred", {{4}, {4}}, 5, Delayed(8, 10, {4}), {}, 2, R::kFull},
      {"PreferredNeedsADelay", {{4}, {1}}, 5, {.max_rows = 8, .preferred_rows = {4}}, {}, 2, R::kIdle},
      // Held for a test.
      {"HeldTakesNothing", {{1}, {1}}, 0, Held(8, 3), {}, 0},
      {"HeldEnough", {{1}, {1}, {1}}, 0, Held(8, 3), {}, 3, R::kIdle},
      {"HeldStillExpires", {{1, 0, 4}, {1, 0, 9}, {1}}, 5, Held(8, 3), {0}, 0, R::kIdle, 9},
      {"HeldSingle", {{1}}, 0, Held(0, 2), {}, 0},
  };
}

std::vector<Case> CasesOfClasses() {
  using R = BatchReason;
  return {
      {"OldestClassRuns", {Of(1), Of(2), Of(1), Of(2)}, 0, Rows(8), {}, 2, R::kIdle, kNever, {0, 2}},
      {"FullOfOneClass", {Of(1), Of(2), Of(1), Of(1)}, 0, Rows(2), {}, 2, R::kFull, kNever, {0, 2}},
      {"NeverOvertakesInAClass", {Of(1, 5), Of(2), Of(1, 4), Of(1)}, 0, Rows(8), {}, 1, R::kFull, kNever, {0}},
      {"PlacesAreOfWhatIsLeft",
       {{1, 0, 2}, Of(1), {1, 0, 2}, Of(2), Of(1)},
       5,
       Rows(8),
       {0, 2},
       2,
       R::kIdle,
       kNever,
       {0, 2}},
      {"AnotherClassIsFull",
       {Of(1, 1, 2), Of(2, 4, 3), Of(2, 4, 4)},
       5,
       Delayed(8, 10),
       {},
       2,
       R::kFull,
       kNever,
       {1, 2}},
      {"DelayOverOfASecondClass",
       {{1, 2, kNever, 0, 1}, {1, 1, kNever, 0, 2}},
       11,
       Delayed(8, 10),
       {},
       1,
       R::kDelay,
       kNever,
       {1}},
      {"EachClassWaits", {Of(1, 1, 2), Of(2, 1, 3)}, 5, Delayed(8, 10), {}, 0, R::kIdle, 12},
      {"SingleOfAnyClass", {Of(1), Of(1)}, 0, Rows(0), {}, 1, R::kSingle},
  };
}

class DecideTest : public ::testing::TestWithParam<Case> {};

TEST_P(DecideTest, Decides) {
  const Case& c = GetParam();
  std::vector<Queued> queue;
  for (const Item& item : c.queue) {
    queue.push_back({item.rows, At(item.arrival), At(item.deadline), item.tokens});
    queue.back().batch_class = static_cast<uint64_t>(item.batch_class);
  }
  std::vector<size_t> places = c.places;
  for (size_t i = 0; c.places.empty() && i < c.take; ++i) places.push_back(i);

  const Decided decision = DecideOn(queue, At(c.now), c.limits);

  EXPECT_EQ(decision.expired, c.expired);
  EXPECT_EQ(decision.take, places);
  if (c.take > 0) {
    EXPECT_EQ(LabelValue(decision.reason), LabelValue(c.reason));
  } else {
    EXPECT_EQ(decision.wake, At(c.wake));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, DecideTest, ::testing::ValuesIn(Cases()),
                         [](const auto& instance) { return instance.param.name; });
INSTANTIATE_TEST_SUITE_P(Classes, DecideTest, ::testing::ValuesIn(CasesOfClasses()),
                         [](const auto& instance) { return instance.param.name; });

// Of one row, or of as many as there are numbers.
Queued Turning(int64_t turn, std::span<const int64_t> row_tokens) {
  Queued request;
  request.rows = std::ssize(row_tokens);
  request.tokens = std::accumulate(row_tokens.begin(), row_tokens.end(), int64_t{0});
  request.turn = turn;
  request.row_tokens = row_tokens;
  return request;
}

constexpr Limits kInParts = {.max_rows = 64, .max_tokens = 400, .part_tokens = 100};

TEST(TurnsTest, WhoseTurnIsFirstRunsFirst) {
  const std::vector<int64_t> row = {100};
  const std::vector<Queued> queue = {Turning(300, row), Turning(400, row), Turning(500, row), Turning(350, row)};
  Limits limits = kInParts;
  limits.max_tokens = 200;
  EXPECT_THAT(DecideOn(queue, At(0), limits).take, ElementsAre(0, 3));
  limits.max_rows = 0;
  EXPECT_THAT(DecideOn({queue.begin() + 1, queue.end()}, At(0), limits).take, ElementsAre(2));
}

TEST(TurnsTest, EqualTurnsGoByArrival) {
  const std::vector<int64_t> row = {400};
  std::vector<Queued> queue = {Turning(9, row)};
  queue.insert(queue.end(), 40, Turning(7, row));  // so many that a sort that isn't stable moves them
  EXPECT_THAT(DecideOn(queue, At(0), kInParts).take, ElementsAre(1));
}

TEST(TurnsTest, ALongRequestIsTakenInPartsOfWholeRows) {
  const std::vector<int64_t> rows(10, 60);  // a part is one of them, since two have more than 100
  const Decided decision = DecideOn(std::vector{Turning(0, rows)}, At(0), kInParts);
  EXPECT_THAT(decision.take, ElementsAre(0));
  EXPECT_THAT(decision.rows, ElementsAre(6));
  EXPECT_EQ(LabelValue(decision.reason), LabelValue(BatchReason::kFull));
}

TEST(TurnsTest, OthersComeBetweenTheParts) {
  const std::vector<int64_t> rows(10, 100), row = {100};
  const std::vector<Queued> queue = {Turning(0, rows), Turning(50, row), Turning(150, row), Turning(1000, row)};
  const Decided decision = DecideOn(queue, At(0), kInParts);
  EXPECT_THAT(decision.take, ElementsAre(0, 1, 2));
  EXPECT_THAT(decision.rows, ElementsAre(2, 1, 1));
}

TEST(TurnsTest, WhatIsNoMoreThanAPartIsTakenWhole) {
  const std::vector<int64_t> rows = {50, 50}, most = {350};
  const Decided decision = DecideOn(std::vector{Turning(0, most), Turning(1, rows)}, At(0), kInParts);
  EXPECT_THAT(decision.take, ElementsAre(0)) << "one of the rows would have had room";
}

TEST(TurnsTest, ARowOfMoreThanAPartOrABatchIsTakenAlone) {
  const std::vector<int64_t> rows = {150, 900, 20, 20};
  EXPECT_THAT(DecideOn(std::vector{Turning(0, rows)}, At(0), kInParts).rows, ElementsAre(1));
  EXPECT_THAT(DecideOn(std::vector{Turning(0, std::span(rows).subspan(1))}, At(0), kInParts).rows, ElementsAre(1));
}

TEST(TurnsTest, PartsKeepToTheRowsOfABatch) {
  const std::vector<int64_t> rows(10, 30);
  Limits limits = kInParts;
  limits.max_rows = 2;
  EXPECT_THAT(DecideOn(std::vector{Turning(0, rows)}, At(0), limits).rows, ElementsAre(2));
}

TEST(TurnsTest, LevelsGoBeforeTurns) {
  const std::vector<int64_t> rows(10, 100);
  std::vector<Queued> queue = {Turning(0, rows), Turning(900, rows)};
  queue[0].level = 2;
  Limits limits = kInParts;
  limits.lanes = 4;
  const Decided decision = DecideOn(queue, At(0), limits);
  EXPECT_THAT(decision.take, ElementsAre(1));
  EXPECT_THAT(decision.rows, ElementsAre(4));
  EXPECT_THAT(decision.passed, ElementsAre(0, 0, 1, 0));
}

TEST(TurnsTest, WithoutBatchingARequestIsTakenWholeUnlessItHasMoreThanABatch) {
  const std::vector<int64_t> rows(10, 100);
  ModelSpec spec;
  spec.max_batch_size = 64;
  spec.dynamic_batching = false;
  spec.preferred_batch_tokens = 200;
  spec.max_batch_tokens = 1000;
  EXPECT_THAT(DecideOn(std::vector{Turning(0, rows)}, At(0), LimitsOf(spec)).rows, ElementsAre(10));
  spec.max_batch_tokens = 399;
  EXPECT_THAT(DecideOn(std::vector{Turning(0, rows)}, At(0), LimitsOf(spec)).rows, ElementsAre(3));
}

TEST(LimitsOfTest, FollowsTheSpecification) {
  ModelSpec spec;
  spec.max_batch_size = 16;
  spec.max_queue_delay = absl::Milliseconds(3);
  spec.preferred_batch_sizes = {4, 8};
  const Limits limits = LimitsOf(spec);
  EXPECT_EQ(limits.max_rows, 16);
  EXPECT_EQ(limits.max_delay, absl::Milliseconds(3));
  EXPECT_THAT(limits.preferred_rows, ElementsAre(4, 8));
}

TEST(LimitsOfTest, BatchesAreFilledToThePreferredTokens) {
  ModelSpec spec;
  spec.max_batch_size = 16;
  spec.max_batch_tokens = 1000;
  EXPECT_EQ(LimitsOf(spec).max_tokens, 1000);
  spec.preferred_batch_tokens = 200;
  EXPECT_EQ(LimitsOf(spec).max_tokens, 200);
  EXPECT_EQ(LimitsOf(spec).part_tokens, 50);
  spec.preferred_batch_tokens = 2000;
  EXPECT_EQ(LimitsOf(spec).max_tokens, 1000);
}

TEST(LimitsOfTest, WithoutDynamicBatchingABatchIsOneRequest) {
  ModelSpec spec;
  spec.max_batch_size = 16;
  spec.dynamic_batching = false;
  EXPECT_EQ(LimitsOf(spec).max_rows, 0);
}

}  // namespace
}  // namespace swizzle
