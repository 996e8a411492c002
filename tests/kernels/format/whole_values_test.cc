#include "kernels/format/whole_values.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/format/csr.h"
#include "kernels/format/format_row.h"

namespace swizzle {
namespace {

// Whole numbers in a matrix that every format holds: in blocks of 16 rows the same two of any four columns.
DenseMatrix Wholes() {
  DenseMatrix dense{.rows = 32, .cols = 64, .values = std::vector<float>(32 * 64)};
  for (int64_t row = 0; row < dense.rows; ++row) {
    for (int64_t col = row / 16; col < dense.cols; col += 4) {
      dense.values[row * dense.cols + col] = static_cast<float>((row * 37 + col * 11) % 200 - 100);
      dense.values[row * dense.cols + col + 1] = 1 + static_cast<float>(col);
    }
  }
  return dense;
}

Weight WeightIn(Format format, const Quantisation& quantisation) {
  DenseMatrix dense = Wholes();
  for (int64_t i = 0; i < dense.rows * dense.cols; ++i) dense.values[i] *= quantisation.Of(i / dense.cols).scale;
  StatusOr<WeightMatrix> matrix = WeightMatrix::FromDense(format, dense);
  EXPECT_TRUE(matrix.ok()) << FormatName(format) << ": " << matrix.status();
  return {.matrix = matrix.ok() ? *std::move(matrix) : WeightMatrix(), .bias = {}, .quantisation = quantisation};
}

Quantisation ByRows() {
  Quantisation quantisation{DType::kInt8, {}, {}};
  for (int row = 0; row < 32; ++row) quantisation.scales.push_back(0.01f * static_cast<float>(row + 1));
  return quantisation;
}

class WholeValuesTest : public ::testing::TestWithParam<Format> {};

INSTANTIATE_TEST_SUITE_P(Formats, WholeValuesTest,
                         ::testing::Values(Format::kDense, Format::kCsr, Format::kShflBw, Format::kNOfM,
                                           Format::kSrBcrs, Format::kHbEll, Format::kBitmap),
                         [](const auto& instance) {
                           std::string name(FormatName(instance.param));
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(WholeValuesTest, EveryValueIsOfTheRowThatTheFormatSays) {
  const Weight weight = WeightIn(GetParam(), ByRows());
  const auto rows = weight.matrix.ValueRows();
  ASSERT_TRUE(rows);
  const DenseMatrix dense = weight.matrix
                                .WithValues([&](std::span<float> values) {
                                  ASSERT_EQ(values.size(), rows->size());
                                  for (size_t i = 0; i < values.size(); ++i) {
                                    if (values[i] != 0) values[i] = static_cast<float>((*rows)[i] + 1);
                                  }
                                })
                                .ToDense();
  for (int64_t i = 0; i < dense.rows * dense.cols; ++i) {
    const int64_t row = i / dense.cols;
    ASSERT_EQ(dense.values[i], Wholes().values[i] != 0 ? static_cast<float>(row + 1) : 0.0f) << i;
  }
}

TEST_P(WholeValuesTest, WholeNumbersScaledAreTheValuesAgain) {
  const Weight weight = WeightIn(GetParam(), ByRows());
  const auto wholes = WholeValues(weight);
  ASSERT_TRUE(wholes);
  const WeightMatrix unscaled = weight.matrix.WithValues([&](std::span<float> values) {
    ASSERT_EQ(values.size(), wholes->size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(static_cast<int8_t>((*wholes)[i]));
  });
  EXPECT_EQ(unscaled.ToDense().values, Wholes().values);
  EXPECT_EQ(ScaledByRows(unscaled, *weight.quantisation).ToDense().values, weight.ToDense().values);
}

TEST_P(WholeValuesTest, AByteAValueIsStored) {
  Weight weight = WeightIn(GetParam(), ByRows());
  const size_t whole_bytes = weight.StoredBytes();
  const size_t values = WholeValues(weight)->size();
  weight.quantisation.reset();
  EXPECT_EQ(weight.StoredBytes() - whole_bytes, 3 * values);
}

TEST(WholeValuesTest, ZeroPointsAreAdded) {
  const auto wholes = WholeValues(WeightIn(Format::kDense, {DType::kUint8, {0.5f}, {120}}));
  ASSERT_TRUE(wholes);
  for (size_t i = 0; i < wholes->size(); ++i) {
    ASSERT_EQ(static_cast<float>(static_cast<uint8_t>((*wholes)[i])) - 120, Wholes().values[i]) << i;
  }
}

TEST(WholeValuesTest, RowsWithZeroPointsOfTheirOwnHaveNone) {
  Quantisation quantisation = ByRows();
  quantisation.zero_points.assign(32, 0);
  EXPECT_TRUE(HasWholeValues(WeightIn(Format::kCsr, quantisation)));
  quantisation.zero_points[5] = 1;
  const Weight weight = WeightIn(Format::kCsr, quantisation);
  EXPECT_FALSE(HasWholeValues(weight));
  EXPECT_FALSE(WholeValues(weight));
}

TEST(WholeValuesTest, ValuesBetweenWholeNumbersHaveNone) {
  Weight weight = WeightIn(Format::kCsr, ByRows());
  weight.matrix = weight.matrix.WithValues([](std::span<float> values) { values[7] *= 1.25f; });
  EXPECT_FALSE(WholeValues(weight));
  weight.matrix = weight.matrix.WithValues([](std::span<float> values) { values[7] = 1e9f; });
  EXPECT_FALSE(WholeValues(weight));
}

TEST(WholeValuesTest, WhatIsNotQuantisedHasNone) {
  Weight weight = WeightIn(Format::kDense, ByRows());
  weight.quantisation.reset();
  EXPECT_FALSE(WholeValues(weight));
}

}  // namespace
}  // namespace swizzle
