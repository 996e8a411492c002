#include "kernels/format/sr_bcrs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/format/csr.h"
#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"
#include "tests/kernels/format/format_checks.h"

namespace swizzle {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The header's worked example.
DenseMatrix ExampleDense() {
  return {.rows = 4, .cols = 4, .values = {1, 0, 2, 3, 4, 0, 0, 5, 0, 6, 0, 0, 0, 7, 0, 0}};
}
SrBcrsMatrix Example() { return SrBcrsMatrix::FromDense(ExampleDense(), 2, 2); }

TEST(SrBcrsTest, WorkedExample) {
  const SrBcrsMatrix matrix = Example();
  EXPECT_THAT(matrix.row_pointers, ElementsAre(0, 3, 4, 5));
  EXPECT_THAT(matrix.col_indices, ElementsAre(0, 2, 3, 4, 1, 4));
  EXPECT_THAT(matrix.values, ElementsAre(1, 2, 4, 0, 3, 0, 5, 0, 6, 0, 7, 0));
  EXPECT_EQ(matrix.nnz(), 7);
  EXPECT_TRUE(matrix.Validate().ok());
  EXPECT_EQ(matrix.ToDense().values, ExampleDense().values);
}

// Whole vectors of rows, drawn.
DenseMatrix Draw(int64_t rows, int64_t cols, int64_t vector_rows, double sparsity) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + cols * 7 + vector_rows));
  std::bernoulli_distribution keeps(1 - sparsity);
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  std::vector<uint8_t> kept(cols);
  for (int64_t row = 0; row < rows; ++row) {
    if (row % vector_rows == 0) std::ranges::generate(kept, [&] { return keeps(random) ? 1 : 0; });
    for (int64_t col = 0; col < cols; ++col) {
      if (kept[col] != 0) dense.values[row * cols + col] = value(random);
    }
  }
  return dense;
}

TEST(SrBcrsTest, RoundTrip) {
  for (const int64_t vector_rows : {2, 4, 8}) {
    for (const int64_t stride : {1, 4, 16}) {
      for (const int64_t rows : {0, 1, 7, 33}) {
        for (const int64_t cols : {0, 1, 18, 65}) {
          const DenseMatrix dense = Draw(rows, cols, vector_rows, 0.7);
          const SrBcrsMatrix matrix = SrBcrsMatrix::FromDense(dense, vector_rows, stride);
          EXPECT_TRUE(matrix.Validate().ok()) << matrix.Validate();
          EXPECT_EQ(matrix.nnz(), dense.nnz());
          EXPECT_EQ(matrix.ToDense().values, dense.values);
        }
      }
    }
  }
}

TEST(SrBcrsTest, FindsTheLongestVectors) {
  for (const int64_t vector_rows : {2, 4, 8}) {
    const DenseMatrix dense = Draw(64, 200, vector_rows, 0.9);
    const auto matrix = SrBcrsMatrix::FromDense(dense);
    ASSERT_TRUE(matrix.ok()) << matrix.status();
    EXPECT_EQ(matrix->vector_rows, vector_rows);
    EXPECT_EQ(matrix->stride, 4);
    EXPECT_EQ(matrix->ToDense().values, dense.values);
  }
}

TEST(SrBcrsTest, WhatSharesNoColumnsIsRefused) {
  const auto matrix = SrBcrsMatrix::FromDense(Draw(64, 200, 1, 0.9));
  EXPECT_EQ(matrix.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(matrix.status().message()), HasSubstr("64 x 200 matrix share too few columns"));
}

TEST(SrBcrsTest, HoldsWhatIsDetected) {
  for (const int64_t vector_rows : {2, 4, 8}) {
    const DenseMatrix dense = Draw(64, 200, vector_rows, 0.9);
    const auto formats = FormatsThatHold(DetectStructure(dense));
    EXPECT_THAT(formats, Contains(Format::kSrBcrs)) << DetectStructure(dense).Name();
    const WeightMatrix held = *WeightMatrix::FromDense(Format::kSrBcrs, dense);
    EXPECT_LT(held.StoredBytes(), WeightMatrix(CsrMatrix::FromDense(dense)).StoredBytes());
  }
  EXPECT_THAT(FormatsThatHold(DetectStructure(Draw(64, 200, 1, 0.9))), Not(Contains(Format::kSrBcrs)));
}

TEST(SrBcrsTest, VisitsRows) {
  std::vector<std::vector<uint32_t>> rows;
  Example().ForEachRow([&](int64_t, std::span<const uint32_t> cols) { rows.emplace_back(cols.begin(), cols.end()); });
  EXPECT_THAT(rows, ElementsAre(ElementsAre(0, 2, 3), ElementsAre(0, 3), ElementsAre(1), ElementsAre(1)));
}

using Malformation = MalformationOf<SrBcrsMatrix>;

class SrBcrsMalformedTest : public ::testing::TestWithParam<Malformation> {};

TEST_P(SrBcrsMalformedTest, IsRejected) { ExpectRejected(Example(), GetParam()); }

using M = SrBcrsMatrix;
INSTANTIATE_TEST_SUITE_P(
    All, SrBcrsMalformedTest,
    ::testing::Values(
        Malformation{"NegativeRows", [](M& m) { m.rows = -1; }, "impossible dimensions -1 x 4"},
        Malformation{"HugeCols", [](M& m) { m.cols = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"VectorsOfThree", [](M& m) { m.vector_rows = 3; }, "vectors of 3 rows"},
        Malformation{"NoVectors", [](M& m) { m.vector_rows = 0; }, "vectors of 0 rows"},
        Malformation{"NoStride", [](M& m) { m.stride = 0; }, "stride of 0"},
        Malformation{"HugeStride", [](M& m) { m.stride = int64_t{1} << 40; }, "1 to 64 are possible"},
        Malformation{"TooFewPointers", [](M& m) { m.row_pointers.pop_back(); }, "has 3 row pointers"},
        Malformation{"HugeRows", [](M& m) { m.rows = (int64_t{1} << 32) - 1; }, "has 4 row pointers"},
        Malformation{"NoWholeStrides", [](M& m) { m.col_indices.pop_back(); }, "no whole strides of 2"},
        Malformation{"TooFewValues", [](M& m) { m.values.pop_back(); }, "has 11 values; 6 vectors of 2 rows have 12"},
        Malformation{"LateBegin", [](M& m) { m.row_pointers[0] = 2; }, "block row 0 is vectors 2 to 3; it must begin"},
        Malformation{"EndBeforeBegin", [](M& m) { m.row_pointers[3] = 3; }, "block row 1 is vectors 4 to 3"},
        Malformation{"GapBetweenRows", [](M& m) { m.row_pointers[1] = 2; }, "block row 1 is vectors 4 to 5; it must"},
        Malformation{"EndBeyond", [](M& m) { m.row_pointers[3] = 7; }, "end at vector 8 of 6"},
        Malformation{"HugeEnd", [](M& m) { m.row_pointers[3] = ~0u; }, "end at vector 4294967296 of 6"},
        Malformation{"ColumnTwice", [](M& m) { m.col_indices[1] = 0; }, "vector 1: column 0 does not come after 0"},
        Malformation{"ColumnBeyond", [](M& m) { m.col_indices[2] = 4; }, "vector 2: column 4"},
        Malformation{"PaddingIsAColumn", [](M& m) { m.col_indices[3] = 3; }, "padding 3: column 3 is not 4"},
        Malformation{"PaddingHasAValue", [](M& m) { m.values[5] = 1; }, "value of padding or past the last row"},
        Malformation{"ValuePastTheLastRow", [](M& m) { m.rows = 3; }, "past the last row is not zero"}),
    [](const auto& test) { return std::string(test.param.name); });

// Whatever a byte of its arrays becomes, it is refused or another matrix that converts.
TEST(SrBcrsTest, CorruptionsAreRefusedOrHarmless) {
  std::mt19937 random(7);
  const DenseMatrix dense = Draw(13, 40, 4, 0.8);
  int refused = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    SrBcrsMatrix matrix = SrBcrsMatrix::FromDense(dense, 4);
    std::vector<uint32_t>& array = turn % 2 == 0 ? matrix.row_pointers : matrix.col_indices;
    array[random() % array.size()] ^= 1u << random() % 32;
    if (!matrix.Validate().ok()) {
      ++refused;
      continue;
    }
    const DenseMatrix made = matrix.ToDense();
    EXPECT_EQ(made.nnz(), matrix.nnz());
  }
  EXPECT_GT(refused, 1500);
}

}  // namespace
}  // namespace swizzle
