#include "client/model_statistics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

ModelStatistics Counted(int64_t requests) {
  ModelStatistics model;
  model.name = "m";
  model.version = "1";
  model.rows = 4 * requests;
  model.batches = requests;
  for (TimedCount* stage : {&model.success, &model.queue, &model.input, &model.compute, &model.output}) {
    *stage = {requests, absl::Milliseconds(3) * requests};
  }
  model.batch_sizes = {{1, {2, absl::Seconds(1)}, {2, absl::Seconds(1)}, {2, absl::Seconds(1)}},
                       {4, {requests, absl::Seconds(requests)}, {requests, absl::Seconds(requests)}, {requests, {}}}};
  return model;
}

TEST(ModelStatisticsTest, TheDifferenceOfTwoLooksIsWhatHappened) {
  const ModelStatistics between = Since(Counted(10), Counted(15));
  EXPECT_EQ(between.rows, 20);
  EXPECT_EQ(between.batches, 5);
  EXPECT_EQ(between.success.count, 5);
  EXPECT_EQ(between.queue.Mean(), absl::Milliseconds(3));
  ASSERT_EQ(between.batch_sizes.size(), 1u);
  EXPECT_EQ(between.batch_sizes[0].rows, 4);
  EXPECT_EQ(between.batch_sizes[0].compute.count, 5);
  EXPECT_EQ(between.batch_sizes[0].compute.Mean(), absl::Seconds(1));
}

TEST(ModelStatisticsTest, WhatBeganAnewIsCountedFromThere) {
  EXPECT_EQ(Since(Counted(10), Counted(3)).success.count, 3);
  ModelStatistics other = Counted(12);
  other.version = "2";
  EXPECT_EQ(Since(Counted(10), other).success.count, 12);
}

TEST(ModelStatisticsTest, NothingHasNoMean) { EXPECT_EQ(TimedCount().Mean(), absl::ZeroDuration()); }

}  // namespace
}  // namespace swizzle::client
