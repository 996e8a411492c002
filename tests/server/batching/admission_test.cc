#include "server/batching/admission.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

Queued Waiting(int64_t rows, int64_t bytes = 0, int64_t tokens = 0) {
  Queued request;
  request.rows = rows;
  request.bytes = bytes;
  request.tokens = tokens;
  return request;
}

constexpr absl::Duration kForever = absl::InfiniteDuration();

// Of a request behind all that waits.
ExpectedWait All(absl::Duration wait) { return {wait, wait}; }

ModelSpec Spec(int64_t max_batch_size) {
  ModelSpec spec;
  spec.max_batch_size = max_batch_size;
  spec.dynamic_batching = max_batch_size > 0;
  return spec;
}

TEST(BoundsOfTest, CountsWorkAsBatchesDo) {
  ModelSpec spec = Spec(8);
  spec.instance_count = 2;
  EXPECT_EQ(BoundsOf(spec).batch_work, 8);
  EXPECT_EQ(BoundsOf(spec).executors, 2);
  spec.max_batch_tokens = 4096;
  EXPECT_EQ(BoundsOf(spec).batch_work, 4096);
  EXPECT_TRUE(BoundsOf(Spec(0)).single);
}

TEST(BoundsOfTest, LetsARoundOfBatchesWait) {
  ModelSpec spec = Spec(4096);
  spec.instance_count = 2;
  EXPECT_EQ(BoundsOf(spec).rows, 8192);
}

TEST(QueueLoadTest, AddsAndRemoves) {
  QueueLoad load;
  const Queued request = Waiting(3, 7, 50);
  load.Add(request);
  load.Add(Waiting(2, 1));
  load.Remove(request);
  EXPECT_EQ(load.requests, 1);
  EXPECT_EQ(load.rows, 2);
  EXPECT_EQ(load.bytes, 1);
  EXPECT_EQ(load.work, 2);
}

TEST(ServiceTimeTest, IsZeroWhileNothingHasRun) { EXPECT_EQ(ServiceTime().Of(100, 8), absl::ZeroDuration()); }

// What a burst meets where batches were small so far: they will be full, and take as much longer as larger ones did.
TEST(ServiceTimeTest, ExpectsSmallBatchesToGrow) {
  ServiceTime time;
  time.Record(false, 1, absl::Milliseconds(30));
  time.Record(false, 4, absl::Milliseconds(60));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(time.Of(16, 8)), 2 * 20 + 16 * 10, 1e-6);
}

// Else an overload that comes suddenly is let in whole: a batch of many rows can take as many times as long.
TEST(ServiceTimeTest, TakesNoTimeAsFixedWhereAllBatchesWereAlike) {
  ServiceTime time;
  for (int i = 0; i < 3; ++i) time.Record(false, 8, absl::Milliseconds(80));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(time.Of(64, 64)), 640, 1e-6);
}

TEST(ServiceTimeTest, ExpectsNoLargerBatchToTakeLess) {
  ServiceTime time;
  time.Record(false, 1, absl::Milliseconds(90));
  time.Record(false, 4, absl::Milliseconds(30));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(time.Of(16, 8)), 2 * (90 * 0.9 + 30) / 1.9, 1e-6);
}

TEST(ServiceTimeTest, GoesByFullBatchesWhereThereWereAny) {
  ServiceTime time;
  time.Record(false, 1, absl::Milliseconds(100));
  time.Record(true, 8, absl::Milliseconds(160));
  EXPECT_EQ(absl::ToInt64Milliseconds(time.Of(16, 8) + absl::Microseconds(1)), 320);
}

// Shapes that come for the first time are planned then: the next batch of them takes a tenth.
TEST(ServiceTimeTest, FirstBatchesOfShapesCountAsLittleMoreThanExpected) {
  ServiceTime time;
  time.RecordFirst(false, 1, 8, absl::Milliseconds(500));
  EXPECT_FALSE(time.known());
  for (int i = 0; i < 10; ++i) time.Record(false, 1, absl::Milliseconds(5));
  time.RecordFirst(false, 1, 8, absl::Milliseconds(500));
  EXPECT_LE(time.Of(1, 8), absl::Milliseconds(6));
  time.RecordFirst(false, 1, 8, absl::Milliseconds(1));
  EXPECT_LT(time.Of(1, 8), absl::Milliseconds(5.5)) << "one that took less counts as it is";
}

// Of a model whose shapes are all new that is what batches take.
TEST(ServiceTimeTest, ExpectsWhatFirstBatchesTakeWhereAllAre) {
  ServiceTime time;
  for (int i = 0; i < 3; ++i) time.RecordFirst(false, 1, 1, absl::Milliseconds(40));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(time.Of(1, 1)), 40, 1e-6);
  for (int i = 0; i < 60; ++i) time.RecordFirst(false, 1, 1, absl::Milliseconds(90));
  EXPECT_GT(absl::ToDoubleMilliseconds(time.Of(1, 1)), 80);
}

TEST(ServiceTimeTest, Forgets) {
  ServiceTime time;
  time.Record(true, 8, absl::Seconds(100));
  for (int i = 0; i < 200; ++i) time.Record(true, 8, absl::Milliseconds(80));
  EXPECT_EQ(absl::ToInt64Milliseconds(time.Of(8, 8) + absl::Microseconds(1)), 80);
}

TEST(RefuseTest, AlwaysLetsOneWait) {
  ModelSpec spec = Spec(8);
  spec.max_queue_bytes = 1;
  EXPECT_FALSE(Refuse(BoundsOf(spec), {}, {}, Waiting(8, 100), All(absl::Hours(1)), absl::ZeroDuration()));
}

TEST(RefuseTest, LetsLessThanARoundWaitHoweverLongThatTakes) {
  const QueueBounds bounds = BoundsOf(Spec(8));
  EXPECT_FALSE(Refuse(bounds, {.requests = 7, .rows = 7, .work = 7}, {}, {}, All(absl::Hours(1)), kForever));
  const auto refusal = Refuse(bounds, {.requests = 8, .rows = 8, .work = 8}, {}, {}, All(absl::Hours(1)), kForever);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->why, Rejection::kExpectedWait);
}

TEST(RefuseTest, IsCautious) {
  ModelSpec spec = Spec(8);
  spec.max_queue_wait = absl::Seconds(10);
  const QueueLoad waiting = {.requests = 8, .rows = 8, .work = 8};
  EXPECT_FALSE(Refuse(BoundsOf(spec), waiting, {}, {}, All(absl::Seconds(8)), kForever));
  EXPECT_TRUE(Refuse(BoundsOf(spec), waiting, {}, {}, All(absl::Seconds(9)), kForever));
  EXPECT_TRUE(Refuse(BoundsOf(spec), waiting, {}, {}, All(absl::Seconds(8)), absl::Seconds(9)));
}

TEST(RefuseTest, WithBatchingOffARoundIsARequestForEachExecutor) {
  ModelSpec spec = Spec(0);
  spec.instance_count = 2;
  EXPECT_FALSE(Refuse(BoundsOf(spec), {.requests = 1, .rows = 1, .work = 1}, {}, {}, All(absl::Hours(1)), kForever));
  EXPECT_TRUE(Refuse(BoundsOf(spec), {.requests = 2, .rows = 2, .work = 2}, {}, {}, All(absl::Hours(1)), kForever));
}

TEST(RefuseTest, LeavesRoomForOtherConnections) {
  QueueBounds bounds = BoundsOf(Spec(1));
  bounds.requests = 100;
  const QueueLoad waiting = {.requests = 90, .rows = 90, .work = 90};
  const auto refuse = [&](const QueueLoad& own) {
    return Refuse(bounds, waiting, own, {}, All(absl::ZeroDuration()), kForever);
  };
  const auto refusal = refuse(waiting);
  ASSERT_TRUE(refusal) << "it has 90 and would leave 9";
  EXPECT_EQ(refusal->why, Rejection::kConnectionShare);
  EXPECT_EQ(refusal->reason, "90 requests, 90 of this connection; the rest is kept for others");
  EXPECT_FALSE(refuse({})) << "who has none finds room";
  EXPECT_FALSE(refuse({.requests = 45, .rows = 45, .work = 45}));
}

TEST(RefuseTest, LeavesRowsBytesAndTimeForOtherConnections) {
  QueueBounds bounds = BoundsOf(Spec(1));
  const QueueLoad rows = {.requests = 2, .rows = bounds.rows - 10, .work = 2};
  EXPECT_TRUE(Refuse(bounds, rows, rows, {}, All(absl::ZeroDuration()), kForever));
  EXPECT_FALSE(Refuse(bounds, rows, {}, {}, All(absl::ZeroDuration()), kForever));
  const QueueLoad bytes = {.requests = 2, .rows = 2, .bytes = bounds.bytes - 10, .work = 2};
  EXPECT_TRUE(Refuse(bounds, bytes, bytes, {}, All(absl::ZeroDuration()), kForever));
  EXPECT_FALSE(Refuse(bounds, bytes, {}, {}, All(absl::ZeroDuration()), kForever));
  bounds.wait = absl::Seconds(10);
  const QueueLoad time = {.requests = 2, .rows = 2, .work = 2};
  EXPECT_TRUE(Refuse(bounds, time, time, {}, All(absl::Milliseconds(8200)), kForever));
  EXPECT_FALSE(Refuse(bounds, time, {}, {}, All(absl::Milliseconds(8200)), kForever));
}

TEST(RefuseTest, AConnectionMayTakeTheWholeQueueWhereTheModelSaysSo) {
  ModelSpec spec = Spec(1);
  spec.max_connection_queue_percent = 100;
  const QueueBounds bounds = BoundsOf(spec);
  const QueueLoad waiting = {.requests = bounds.requests - 1, .rows = bounds.requests - 1, .work = 1};
  EXPECT_FALSE(Refuse(bounds, waiting, waiting, {}, All(absl::ZeroDuration()), kForever));
}

// A queue of a few requests has nothing to keep back.
TEST(RefuseTest, TakesAFewRequestsOfOneConnection) {
  ModelSpec spec = Spec(1);
  spec.queue_policy.max_requests = 8;
  const QueueLoad waiting = {.requests = 7, .rows = 7, .work = 7};
  EXPECT_FALSE(Refuse(BoundsOf(spec), waiting, waiting, {}, All(absl::ZeroDuration()), kForever));
}

}  // namespace
}  // namespace swizzle
