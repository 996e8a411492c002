#include "model_loader/plan/choose/measured_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/network_builder.h"
#include "tests/support/random_encoder.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

Network Images(int64_t batch_size = 0) {
  testing::NetworkBuilder builder(1, batch_size);
  builder.Pointwise(Op::kActivation, {builder.Value("x", 8, 4, 4)}, testing::kRelu);
  return builder.Finish();
}

Network Encoder() {
  Network network = Images();
  network.sequences.emplace();
  return network;
}

TEST(MeasuredSizesTest, OfTheHostAreTwo) {
  EXPECT_THAT(MeasuredCounts(Images(), 64, false, {}), ElementsAre(1, 8));
  EXPECT_THAT(MeasuredCounts(Encoder(), {64, 16384}, false, {}), ElementsAre(64, 512));
  EXPECT_THAT(MeasuredCounts(Images(), 512, false, std::vector<int64_t>{64, 512}), ElementsAre(64, 512));
}

TEST(MeasuredSizesTest, OfADeviceArePowersOfTwo) {
  EXPECT_THAT(MeasuredCounts(Images(), 64, true, {}), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(MeasuredCounts(Encoder(), {64, 16384}, true, {}), ElementsAre(64, 128, 256, 512, 1024, 2048, 4096));
}

// Attention by places has as many tokens as its pattern.
TEST(MeasuredSizesTest, OfPatternsAreWholeSequences) {
  const Network network = testing::MakeRandomEncoder({.length = 72, .windows = 8});
  EXPECT_THAT(MeasuredCounts(network, {64, 16384}, false, {}), ElementsAre(72, 576));
  EXPECT_THAT(MeasuredCounts(network, {64, 16384}, true, {}), ElementsAre(72, 144, 288, 576, 1080, 2088, 4104));
  EXPECT_THAT(MeasuredCounts(network, {3, 230}, true, {}), ElementsAre(72, 144, 216));
  const Network banded = testing::MakeRandomEncoder({.length = 5000, .band = 3});
  EXPECT_THAT(MeasuredCounts(banded, {64, 16384}, true, {}), ElementsAre(5000));
}

TEST(MeasuredSizesTest, EndWithTheLargestBatch) {
  EXPECT_THAT(MeasuredCounts(Images(), 1, true, {}), ElementsAre(1));
  EXPECT_THAT(MeasuredCounts(Images(), 5, true, {}), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(MeasuredCounts(Encoder(), {2, 40}, true, {}), ElementsAre(40));
  EXPECT_THAT(MeasuredCounts(Images(3), 3, true, {}), ElementsAre(3));
}

// Batches of one and of eight sequences of 128 tokens ran on what was chosen for 64 and for 512 tokens: .93 and .91 of
// a dense plan's speed on a GPU, where at 128 and 1,024 other kernels win.
TEST(MeasuredSizesTest, EachPowerOfTwoOfADeviceRunsOnItsOwnChoice) {
  const auto measured = MeasuredCounts(Encoder(), {64, 16384}, true, {});
  EXPECT_THAT(BucketLimits(measured, 16384), ElementsAre(64, 128, 256, 512, 1024, 2048, 16384));
}

TEST(MeasuredSizesTest, BucketsEndHalfWayAsFactorsGo) {
  EXPECT_THAT(BucketLimits(std::vector<int64_t>{1, 8, 64}, 100), ElementsAre(2, 16, 100));
  EXPECT_THAT(BucketLimits(std::vector<int64_t>{1, 2, 4, 5}, 5), ElementsAre(1, 2, 4, 5));
}

TEST(MeasuredSizesTest, EveryThirdIsMeasuredBeforeThoseBetween) {
  EXPECT_THAT(MeasuringOrder(7), ElementsAre(0, 3, 6, 1, 2, 4, 5));
  EXPECT_THAT(MeasuringOrder(6), ElementsAre(0, 3, 5, 1, 2, 4));
  EXPECT_THAT(MeasuringOrder(4), ElementsAre(0, 1, 2, 3));
  const auto neighbours = NeighboursOf(4, 6);
  ASSERT_TRUE(neighbours.has_value());
  EXPECT_EQ(neighbours->below, 3u);
  EXPECT_EQ(neighbours->above, 5u);
}

TEST(MeasuredSizesTest, TimesBetweenGrowByAPower) {
  EXPECT_DOUBLE_EQ(TimeBetween(8, 10.0, 64, 80.0, 16), 20.0);
  EXPECT_DOUBLE_EQ(TimeBetween({1, 64}, 5.0, {4, 512}, 5.0, {2, 256}), 5.0);
}

}  // namespace
}  // namespace swizzle
