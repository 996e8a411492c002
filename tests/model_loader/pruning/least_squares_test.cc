#include "model_loader/pruning/least_squares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "model_loader/pruning/cholesky.h"
#include "model_loader/pruning/magnitude.h"

namespace swizzle {
namespace {

void InTurn(int64_t count, const std::function<void(int64_t)>& body) {
  for (int64_t i = 0; i < count; ++i) body(i);
}

// Of inputs that go together, as neighbouring channels and pixels do.
InputMoments DrawMoments(int64_t inputs, int64_t samples) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  InputMoments moments{inputs, std::vector<double>(inputs * inputs)};
  std::vector<double> x(inputs);
  for (int64_t sample = 0; sample < samples; ++sample) {
    double common = 0;
    for (double& value : x) value = common = 0.8 * common + normal(random);
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t j = 0; j < inputs; ++j) moments.sums[i * inputs + j] += x[i] * x[j];
    }
  }
  return moments;
}

std::vector<float> DrawWeights(int64_t elements) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> weights(elements);
  std::ranges::generate(weights, [&] { return normal(random); });
  return weights;
}

// Sizes on both sides of the blocking's.
TEST(Cholesky, FactorsSolveAndInvert) {
  for (const int64_t n : {1, 2, 47, 48, 49, 130, 600}) {
    InputMoments moments = DrawMoments(n, 2 * n);
    for (int64_t i = 0; i < n; ++i) moments.sums[i * n + i] += 1;
    std::vector<double> factor = moments.sums, x(n), b(n);
    ASSERT_TRUE(Factorise(factor, n));
    for (int64_t i = 0; i < n; ++i) x[i] = std::sin(static_cast<double>(i));
    for (int64_t i = 0; i < n; ++i) b[i] = Dot(moments.sums.data() + i * n, x.data(), n);
    Solve(factor, n, b);
    for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(b[i], x[i], 1e-8) << n;
    const std::vector<double> inverse = Inverse(factor, n);
    for (int64_t i = 0; i < n; i += 13) {
      for (int64_t j = 0; j < n; ++j) {
        const double product = Dot(moments.sums.data() + i * n, inverse.data() + j * n, n);
        ASSERT_NEAR(product, i == j ? 1 : 0, 1e-8) << n;
      }
    }
  }
}

TEST(Cholesky, WhatIsNotPositiveDefiniteIsRefused) {
  std::vector<double> matrix = {1, 2, 2, 1};
  EXPECT_FALSE(Factorise(matrix, 2));
  matrix = {std::nan(""), 0, 0, 1};
  EXPECT_FALSE(Factorise(matrix, 2));
}

class CompensateTest : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 24, kCols = 60;

  OutputErrors Run(double sparsity) {
    original_ = DrawWeights(kRows * kCols);
    weights_ = original_;
    PruneSmallest(weights_, sparsity);
    pruned_ = weights_;
    return Compensate({kRows, kCols, weights_}, original_, moments_, InTurn);
  }

  // What the compensation makes least: the squared error with damping, of one row.
  double Objective(int64_t row, std::span<const float> weights) const {
    double trace = 0, objective = 0;
    for (int64_t i = 0; i < kCols; ++i) trace += moments_.sums[i * kCols + i];
    std::vector<double> d(kCols);
    for (int64_t i = 0; i < kCols; ++i) d[i] = double{weights[row * kCols + i]} - original_[row * kCols + i];
    for (int64_t i = 0; i < kCols; ++i) {
      objective += d[i] * (Dot(moments_.sums.data() + i * kCols, d.data(), kCols) + 0.01 * trace / kCols * d[i]);
    }
    return objective;
  }

  InputMoments moments_ = DrawMoments(kCols, 300);
  std::vector<float> original_, pruned_, weights_;
};

TEST_F(CompensateTest, LessensTheErrorAndKeepsTheZeros) {
  for (const double sparsity : {0.3, 0.5, 0.8, 0.95}) {
    const OutputErrors errors = Run(sparsity);
    EXPECT_LT(errors.compensated, 0.9 * errors.pruned) << sparsity;
    EXPECT_GT(errors.compensated, 0);
    for (size_t i = 0; i < weights_.size(); ++i) {
      EXPECT_TRUE(pruned_[i] != 0 || weights_[i] == 0) << i;
    }
  }
}

// No other weights in the same places do better.
TEST_F(CompensateTest, IsTheLeast) {
  Run(0.7);
  for (int64_t row = 0; row < kRows; row += 5) {
    const double least = Objective(row, weights_);
    for (int64_t col = 0; col < kCols; ++col) {
      if (pruned_[row * kCols + col] == 0) continue;
      for (const float step : {-0.01f, 0.01f}) {
        std::vector<float> other = weights_;
        other[row * kCols + col] += step;
        EXPECT_GT(Objective(row, other), least);
      }
    }
  }
}

TEST_F(CompensateTest, InputsThatAreAllZeroLeaveWeightsAsTheyWere) {
  moments_.sums.assign(moments_.sums.size(), 0.0);
  const OutputErrors errors = Run(0.5);
  EXPECT_EQ(weights_, pruned_);
  EXPECT_EQ(errors.pruned, 0);
}

TEST_F(CompensateTest, WhatIsNoNumberLeavesWeightsAsTheyWere) {
  moments_.sums[5] = std::nan("");
  Run(0.5);
  EXPECT_EQ(weights_, pruned_);
}

// Rows that are solved together come out as alone.
TEST_F(CompensateTest, RowsOfOneMaskAreIndependent) {
  original_ = DrawWeights(kRows * kCols);
  const auto prune = [](std::vector<float> weights) {
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = i % kCols % 3 == 0 ? weights[i] : 0.0f;
    return weights;
  };
  std::vector<float> together = prune(original_);
  Compensate({kRows, kCols, together}, original_, moments_, InTurn);
  const std::vector<float> row(original_.begin() + kCols, original_.begin() + 2 * kCols);
  std::vector<float> alone = prune(row);
  Compensate({1, kCols, alone}, row, moments_, InTurn);
  EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + kCols));
}

TEST_F(CompensateTest, LayersThatWouldTakeTooLongAreSwept) {
  std::vector<float> small(64 * 64, 1.0f);
  EXPECT_EQ(CompensationFor({64, 64, small}), Compensation::kExact);
  original_ = DrawWeights(kRows * kCols);
  pruned_ = original_;
  PruneSmallest(pruned_, 0.5);
  weights_ = pruned_;
  SweepColumns({kRows, kCols, weights_}, original_, moments_, InTurn);
  std::vector<float> exact = pruned_;
  Compensate({kRows, kCols, exact}, original_, moments_, InTurn);
  double before = 0, swept = 0, least = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    before += Objective(row, pruned_), swept += Objective(row, weights_), least += Objective(row, exact);
  }
  EXPECT_LT(swept, 0.8 * before);
  EXPECT_LT(least, swept);
  for (size_t i = 0; i < weights_.size(); ++i) EXPECT_EQ(weights_[i] == 0, pruned_[i] == 0);
}

// Of weights of one size that go alone, the one goes that the others can make good.
TEST(Saliencies, CountWhatTheOthersCanMakeGood) {
  const InputMoments moments{3, {1, 0.9, 0, 0.9, 1, 0, 0, 0, 1}};
  std::vector<float> weights = {1, 1, 1};
  const std::vector<float> saliencies = Saliencies({1, 3, weights}, moments);
  EXPECT_NEAR(saliencies[0], 0.19, 0.05);
  EXPECT_NEAR(saliencies[2], 1, 0.05);
}

}  // namespace
}  // namespace swizzle
