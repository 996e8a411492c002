#include "kernels/cpu/conv/few_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace swizzle::cpu {
namespace {

// A matrix in rows that are three elements longer than they need be, which hold NaNs; element (row, column) of it.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns, bool transposed, std::mt19937& random) : transposed_(transposed) {
    const int64_t lines = transposed ? columns : rows, length = transposed ? rows : columns;
    stride_ = length + 3;
    elements_.assign(static_cast<size_t>(lines * stride_), std::nanf(""));
    std::normal_distribution<float> normal;
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t i = 0; i < length; ++i) elements_[static_cast<size_t>(line * stride_ + i)] = normal(random);
    }
  }

  double At(int64_t row, int64_t column) const {
    return elements_[static_cast<size_t>(transposed_ ? column * stride_ + row : row * stride_ + column)];
  }
  SgemmOperand operand() const { return {elements_.data(), stride_, transposed_}; }

 private:
  const bool transposed_;
  int64_t stride_ = 0;
  std::vector<float> elements_;
};

using Multiply = void (*)(const FewRowsProduct&);

void Compare(Multiply multiply, int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
  std::mt19937 random(static_cast<uint32_t>(m * 10000 + n * 100 + k));
  const Matrix a(m, k, a_transposed, random), b(k, n, b_transposed, random);
  const int64_t stride = n + 2;
  constexpr float kUntouched = 7.0f;
  std::vector<float> c(static_cast<size_t>(m * stride), kUntouched);
  const FewRowsProduct product = {m, n, k, a.operand(), b.operand(), c.data(), stride};
  if (!HasFewRows(product)) return;
  multiply(product);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < stride; ++column) {
      double sum = 0.0;
      for (int64_t i = 0; i < k && column < n; ++i) sum += a.At(row, i) * b.At(i, column);
      const float found = c[static_cast<size_t>(row * stride + column)];
      if (column >= n) {
        ASSERT_EQ(found, kUntouched);
      } else {
        ASSERT_NEAR(found, sum, 1e-5 * std::sqrt(static_cast<double>(k)) * 4) << m << " " << n << " " << k;
      }
    }
  }
}

TEST(FewRows, MultipliesLikeTheReference) {
  std::vector<Multiply> targets = {N_EMU128::MultiplyFewRows};
  if (DetectFeatures() & kAvx2) targets.push_back(N_AVX2::MultiplyFewRows);
  if (DetectFeatures() & kAvx512) targets.push_back(N_AVX3::MultiplyFewRows);
  for (const Multiply multiply : targets) {
    for (int64_t m = 1; m <= 4; ++m) {
      for (const int64_t n : {1, 3, 4, 15, 16, 17, 64, 67, 129, 150}) {
        for (const int64_t k : {1, 7, 16, 31, 70}) {
          for (const bool b_transposed : {false, true}) {
            Compare(multiply, m, n, k, false, b_transposed);
            Compare(multiply, m, n, k, true, b_transposed);
          }
        }
      }
    }
  }
}

TEST(FewRows, LeavesWhatItWouldReadInStridesToOthers) {
  const FewRowsProduct across = {2, 4, 8, {nullptr, 2, true}, {nullptr, 8, true}, nullptr, 4};
  EXPECT_FALSE(HasFewRows(across));
  const FewRowsProduct one = {1, 4, 8, {nullptr, 1, true}, {nullptr, 8, true}, nullptr, 4};
  EXPECT_TRUE(HasFewRows(one));
  const FewRowsProduct many = {5, 4, 8, {nullptr, 8}, {nullptr, 4}, nullptr, 4};
  EXPECT_FALSE(HasFewRows(many));
}

}  // namespace
}  // namespace swizzle::cpu
