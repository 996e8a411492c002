#include "kernels/format/csr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "kernels/format/matrix_parts.h"
#include "tests/kernels/format/format_checks.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

// The header's worked example.
DenseMatrix ExampleDense() {
  return {.rows = 4, .cols = 4, .values = {1, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 4, 0, 5, 0}};
}

CsrMatrix Example() { return CsrMatrix::FromDense(ExampleDense()); }

TEST(CsrTest, WorkedExample) {
  const CsrMatrix csr = Example();
  EXPECT_THAT(csr.row_offsets, ElementsAre(0, 2, 2, 3, 5));
  EXPECT_THAT(csr.col_indices, ElementsAre(0, 3, 1, 0, 2));
  EXPECT_THAT(csr.values, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(csr.nnz(), 5);
  EXPECT_TRUE(csr.Validate().ok());
}

TEST(CsrTest, NegativeZeroIsDropped) {
  const CsrMatrix csr = CsrMatrix::FromDense({.rows = 1, .cols = 2, .values = {-0.0f, 1}});
  EXPECT_THAT(csr.col_indices, ElementsAre(1));
}

TEST(CsrTest, RoundTrip) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  struct Size {
    int64_t rows, cols;
  };
  for (const Size size : {Size{0, 0}, {1, 1}, {3, 0}, {0, 5}, {17, 31}, {64, 100}}) {
    for (const float sparsity : {0.0f, 0.5f, 0.9f, 1.0f}) {
      DenseMatrix dense{.rows = size.rows, .cols = size.cols, .values = std::vector<float>(size.rows * size.cols)};
      for (float& value : dense.values) value = (uniform(random) + 1) / 2 < sparsity ? 0 : uniform(random);
      const CsrMatrix csr = CsrMatrix::FromDense(dense);
      EXPECT_TRUE(csr.Validate().ok());
      EXPECT_EQ(csr.nnz(), dense.nnz());
      const DenseMatrix back = csr.ToDense();
      EXPECT_EQ(back.rows, dense.rows);
      EXPECT_EQ(back.cols, dense.cols);
      EXPECT_EQ(back.values, dense.values);
    }
  }
}

TEST(CsrTest, StoredZeroIsLegal) {
  CsrMatrix csr = Example();
  csr.values[0] = 0;
  EXPECT_TRUE(csr.Validate().ok());
}

using Malformation = MalformationOf<CsrMatrix>;

class CsrMalformedTest : public ::testing::TestWithParam<Malformation> {};

TEST_P(CsrMalformedTest, IsRejected) { ExpectRejected(Example(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    All, CsrMalformedTest,
    ::testing::Values(
        Malformation{"NegativeRows", [](CsrMatrix& m) { m.rows = -1; }, "impossible dimensions -1 x 4"},
        Malformation{"NegativeCols", [](CsrMatrix& m) { m.cols = -4; }, "impossible dimensions 4 x -4"},
        Malformation{"HugeRows", [](CsrMatrix& m) { m.rows = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"HugeCols", [](CsrMatrix& m) { m.cols = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"TooFewOffsets", [](CsrMatrix& m) { m.row_offsets.pop_back(); }, "4 row offsets, not 5"},
        Malformation{"TooManyOffsets", [](CsrMatrix& m) { m.row_offsets.push_back(5); }, "6 row offsets, not 5"},
        Malformation{"NoOffsets", [](CsrMatrix& m) { m.row_offsets.clear(); }, "0 row offsets, not 5"},
        Malformation{"TooFewColumns", [](CsrMatrix& m) { m.col_indices.pop_back(); }, "5 values and 4 column indices"},
        Malformation{"TooFewValues", [](CsrMatrix& m) { m.values.pop_back(); }, "4 values and 5 column indices"},
        Malformation{"StartsLate", [](CsrMatrix& m) { m.row_offsets[0] = 1; }, "run from 1 to 5"},
        Malformation{"EndsEarly", [](CsrMatrix& m) { m.row_offsets[4] = 4; }, "run from 0 to 4"},
        Malformation{"EndsLate", [](CsrMatrix& m) { m.row_offsets[4] = 6; }, "run from 0 to 6"},
        Malformation{"OffsetFalls", [](CsrMatrix& m) { m.row_offsets[2] = 1; }, "CSR row 1: its offset 2"},
        Malformation{"OffsetBeyondEnd", [](CsrMatrix& m) { m.row_offsets[1] = 100; }, "CSR row 1: its offset 100"},
        Malformation{"ColumnOutOfRange", [](CsrMatrix& m) { m.col_indices[1] = 4; },
                     "row 0, entry 1: column 4 is not below 4"},
        Malformation{"ColumnsUnsorted", [](CsrMatrix& m) { std::swap(m.col_indices[3], m.col_indices[4]); },
                     "row 3, entry 4: column 0 does not come after column 2"},
        Malformation{"ColumnTwice", [](CsrMatrix& m) { m.col_indices[4] = 0; },
                     "row 3, entry 4: column 0 does not come after column 0"}),
    [](const auto& test) { return test.param.name; });

TEST(CsrTest, BytesOfPackedFile) {
  EXPECT_EQ(StoredBytes(Example()), 5 * (4 + 2) + 5 * 4u);
  CsrMatrix wide = Example();
  wide.cols = 65536;
  EXPECT_EQ(StoredBytes(wide), 5 * (4 + 2) + 5 * 4u);
  wide.cols = 65537;
  EXPECT_EQ(StoredBytes(wide), 5 * (4 + 4) + 5 * 4u);
}

TEST(CsrTest, RowSwizzleIsByFallingLengthAndStable) { EXPECT_THAT(RowSwizzle(Example()), ElementsAre(0, 3, 2, 1)); }

TEST(DenseTest, Validate) {
  EXPECT_TRUE(ExampleDense().Validate().ok());
  EXPECT_TRUE(DenseMatrix().Validate().ok());
  EXPECT_EQ((DenseMatrix{.rows = 2, .cols = 2, .values = {1, 2, 3}}).Validate().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ((DenseMatrix{.rows = -2, .cols = -2, .values = {1, 2, 3, 4}}).Validate().code(),
            StatusCode::kInvalidArgument);
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ((DenseMatrix{.rows = huge, .cols = huge, .values = {}}).Validate().code(), StatusCode::kInvalidArgument);
}

TEST(DenseTest, CountsAndBytes) {
  EXPECT_EQ(ExampleDense().nnz(), 5);
  EXPECT_EQ(StoredBytes(ExampleDense()), 64u);
}

}  // namespace
}  // namespace swizzle
