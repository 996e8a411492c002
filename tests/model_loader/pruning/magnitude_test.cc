#include "model_loader/pruning/magnitude.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

std::vector<float> Pruned(std::vector<float> weights, double sparsity) {
  PruneSmallest(weights, sparsity);
  return weights;
}

TEST(PruneSmallest, ZerosTheSmallestMagnitudes) {
  EXPECT_THAT(Pruned({3.0f, -1.0f, 0.5f, -4.0f}, 0.5), ElementsAre(3.0f, 0.0f, 0.0f, -4.0f));
}

TEST(PruneSmallest, GivesExactlyTheSparsityAskedFor) {
  for (const double sparsity : {0.0, 0.1, 0.5, 0.9, 0.999, 1.0}) {
    DenseMatrix matrix = testing::MakeRandomMatrix(37, 53, 0.0, 1);
    PruneSmallest(matrix.values, sparsity);
    const int64_t zeros = 37 * 53 - matrix.nnz();
    EXPECT_EQ(zeros, std::llround(sparsity * 37 * 53)) << sparsity;
  }
}

TEST(PruneSmallest, KeptMagnitudesAreNotBelowPrunedOnes) {
  const DenseMatrix matrix = testing::MakeRandomMatrix(20, 30, 0.0, 2);
  const std::vector<float> pruned = Pruned(matrix.values, 0.7);
  float smallest_kept = std::numeric_limits<float>::infinity(), largest_pruned = 0.0f;
  for (size_t i = 0; i < pruned.size(); ++i) {
    const float magnitude = std::abs(matrix.values[i]);
    if (pruned[i] == 0.0f) {
      largest_pruned = std::max(largest_pruned, magnitude);
    } else {
      smallest_kept = std::min(smallest_kept, magnitude);
    }
  }
  EXPECT_LE(largest_pruned, smallest_kept);
}

TEST(PruneSmallest, OfEqualMagnitudesTheFirstGo) {
  EXPECT_THAT(Pruned({1.0f, -1.0f, 1.0f, -1.0f}, 0.5), ElementsAre(0.0f, 0.0f, 1.0f, -1.0f));
}

TEST(PruneSmallest, ZerosThatAreThereCount) {
  EXPECT_THAT(Pruned({0.0f, 2.0f, -0.0f, 1.0f}, 0.5), ElementsAre(0.0f, 2.0f, 0.0f, 1.0f));
  EXPECT_THAT(Pruned({0.0f, 0.0f, 0.0f, 1.0f}, 0.5), ElementsAre(0.0f, 0.0f, 0.0f, 1.0f));
}

TEST(PruneSmallest, WhatIsNotANumberIsKeptLongest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> pruned = Pruned({nan, 1.0f, -infinity, 2.0f}, 0.5);
  EXPECT_TRUE(std::isnan(pruned[0]));
  EXPECT_EQ(pruned[2], -infinity);
}

TEST(PruneSmallest, NothingToPruneIsFine) {
  EXPECT_TRUE(Pruned({}, 0.9).empty());
  EXPECT_THAT(Pruned({1.0f}, 0.4), ElementsAre(1.0f));
}

TEST(PruneSmallest, GoesByScores) {
  std::vector<float> weights = {5, 4, 3, 0, 1};
  const std::vector<float> scores = {-1, 2, 3, 9, -0.5f};
  PruneSmallest(weights, 0.4, scores);
  EXPECT_EQ(weights, (std::vector<float>{0, 4, 3, 0, 1}));  // what is zero goes first, whatever its score
  PruneSmallest(weights, 0.6, scores);
  EXPECT_EQ(weights, (std::vector<float>{0, 4, 3, 0, 0}));
}

}  // namespace
}  // namespace swizzle
