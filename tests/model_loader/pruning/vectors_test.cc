#include "model_loader/pruning/vectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "kernels/format/shfl_bw.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(PruneVectors, ZerosTheVectorsOfLeastScore) {
  std::vector<float> weights = {1, -9, 1,  //
                                2, 1,  1,  //
                                1, 1,  8,  //
                                7, 1,  2};
  PruneVectors({4, 3, weights}, RowsInOrder(4), 2, 0.5);
  EXPECT_THAT(weights, ElementsAre(0, -9, 0, 0, 1, 0, 1, 0, 8, 7, 0, 2));
}

TEST(PruneVectors, GroupsAreOfTheOrder) {
  std::vector<float> weights = {5, 1, 1, 5, 5, 1, 1, 5};
  const std::vector<uint32_t> order = {0, 2, 1, 3};
  PruneVectors({4, 2, weights}, order, 2, 0.5);
  EXPECT_THAT(weights, ElementsAre(5, 0, 0, 5, 5, 0, 0, 5));
}

TEST(PruneVectors, AShortGroupCountsByRow) {
  std::vector<float> weights = {1, 1, 1.5f};
  PruneVectors({3, 1, weights}, RowsInOrder(3), 2, 0.5);
  EXPECT_THAT(weights, ElementsAre(0, 0, 1.5f));
}

TEST(PruneVectors, WhatIsNotANumberIsKeptLongest) {
  std::vector<float> weights = {std::nanf(""), 3, 0, 3};
  PruneVectors({2, 2, weights}, RowsInOrder(2), 2, 0.5);
  EXPECT_TRUE(std::isnan(weights[0]));
  EXPECT_EQ(weights[1], 0);
}

TEST(PruneBlocks, ZerosTheBlocksOfLeastMean) {
  std::vector<float> weights = {1, 1, 3,  //
                                1, 2, 3};
  PruneBlocks({2, 3, weights}, 2, 0.5);
  EXPECT_THAT(weights, ElementsAre(0, 0, 3, 0, 0, 3));
}

// With 2 taps, columns 0 2 4 6 and 1 3 5 7: four blocks, of which the lesser two go.
TEST(PruneBlocks, BlocksLieAlongInputChannels) {
  std::vector<float> weights = {1, 5, 1, 5, 6, 2, 6, 2,  //
                                1, 5, 1, 5, 6, 2, 6, 2};
  PruneBlocks({2, 8, weights, {}, 2}, 2, 0.5);
  EXPECT_THAT(weights, ElementsAre(0, 5, 0, 5, 6, 0, 6, 0, 0, 5, 0, 5, 6, 0, 6, 0));
}

TEST(PruneVectors, ZerosGoBeforeWhatScoresLess) {
  std::vector<float> weights = {0, 1, 2, 3};
  const std::vector<float> scores = {0, -1, -2, 5};
  PruneVectors({4, 1, weights, scores}, RowsInOrder(4), 1, 0.5);
  EXPECT_THAT(weights, ElementsAre(0, 1, 0, 3));
}

TEST(PruneNOfM, KeepsTheLargestOfEachGroup) {
  std::vector<float> weights = {1, -4, 3, 2, 5, 6,  //
                                2, 2,  2, 2, 0, 1};
  PruneNOfM({2, 6, weights}, 2, 4);
  EXPECT_THAT(weights, ElementsAre(0, -4, 3, 0, 5, 6, 0, 0, 2, 2, 0, 1));
}

// Groups are of channels at one tap: with 2 taps, columns 0 2 4 6 and 1 3 5 7.
TEST(PruneNOfM, GroupsLieAlongInputChannels) {
  std::vector<float> weights = {8, 1, 7, 2, 6, 3, 5, 4};
  PruneNOfM({1, 8, weights, {}, 2}, 2, 4);
  EXPECT_THAT(weights, ElementsAre(8, 0, 7, 0, 0, 3, 0, 4));
}

TEST(PruneNOfM, HoldsWhateverTheShape) {
  for (const int64_t m : {2, 3, 4, 8, 16}) {
    for (const int64_t cols : {1, 5, 32, 45}) {
      DenseMatrix matrix = testing::MakeRandomMatrix(9, cols, 0.2, 5);
      const int64_t n = m / 2;
      PruneNOfM({9, cols, matrix.values}, n, m);
      for (int64_t row = 0; row < 9; ++row) {
        for (int64_t begin = 0; begin < cols; begin += m) {
          const auto first = matrix.values.begin() + row * cols + begin;
          EXPECT_LE(std::count_if(first, first + std::min(m, cols - begin), [](float w) { return w != 0; }), n);
        }
      }
    }
  }
}

// Rows that keep the same columns, drawn apart, are found again.
TEST(FindRowOrder, BringsRowsTogetherThatKeepTheSameColumns) {
  constexpr int64_t kRows = 128, kCols = 96, kVector = 16;
  std::mt19937 random(1);
  std::vector<uint32_t> shuffled = RowsInOrder(kRows);
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  std::vector<float> weights(kRows * kCols);
  std::vector<int64_t> family(kRows);
  std::set<uint32_t> large;
  for (int64_t place = 0; place < kRows; ++place) {
    if (place % kVector == 0) {
      large.clear();
      while (large.size() < kCols / 4) large.insert(random() % kCols);
    }
    family[shuffled[place]] = place / kVector;
    for (uint32_t col = 0; col < kCols; ++col) {
      const float small = static_cast<float>(random() % 100) / 1000;
      weights[shuffled[place] * kCols + col] = large.contains(col) ? 1 + small : small;
    }
  }
  const auto order = FindRowOrder({kRows, kCols, weights}, kVector, 0.75);
  const std::set<uint32_t> named(order.begin(), order.end());
  EXPECT_EQ(named.size(), size_t{kRows});
  const double all = SumOfMagnitudes(weights);
  std::vector<float> pruned = weights, as_they_stand = weights;
  PruneVectors({kRows, kCols, pruned}, order, kVector, 0.75);
  PruneVectors({kRows, kCols, as_they_stand}, RowsInOrder(kRows), kVector, 0.75);
  EXPECT_GT(SumOfMagnitudes(pruned) / all, 0.8);
  EXPECT_LT(SumOfMagnitudes(as_they_stand) / all, 0.6);
  EXPECT_THAT(FindRowOrder({kRows, kCols, weights}, kVector, 0.75), ElementsAreArray(order));  // again the same
}

TEST(FindRowOrder, IsNeverWorseThanTheRowsOwn) {
  for (const int64_t vector_rows : {16, 32, 64}) {
    DenseMatrix matrix = testing::MakeRandomMatrix(100, 40, 0.0, 6);
    const auto order = FindRowOrder({100, 40, matrix.values}, vector_rows, 0.8);
    std::vector<float> shuffled = matrix.values, own = matrix.values;
    PruneVectors({100, 40, shuffled}, order, vector_rows, 0.8);
    PruneVectors({100, 40, own}, RowsInOrder(100), vector_rows, 0.8);
    EXPECT_GE(SumOfMagnitudes(shuffled), SumOfMagnitudes(own));
    DenseMatrix pruned{100, 40, shuffled};
    EXPECT_EQ(ShflBwMatrix::FromDense(pruned, vector_rows, order).ToDense().values, shuffled);
  }
}

}  // namespace
}  // namespace swizzle
