#include "kernels/format/shfl_bw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

#include "kernels/format/csr.h"
#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"
#include "tests/kernels/format/format_checks.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The header's worked example.
DenseMatrix ExampleDense() {
  return {.rows = 4, .cols = 4, .values = {1, 0, 2, 0, 0, 3, 0, 4, 0, 5, 0, 6, 7, 0, 8, 0}};
}
ShflBwMatrix Example() { return ShflBwMatrix::FromDense(ExampleDense(), 2, {0, 3, 1, 2}); }

TEST(ShflBwTest, WorkedExample) {
  const ShflBwMatrix matrix = Example();
  EXPECT_THAT(matrix.row_order, ElementsAre(0, 3, 1, 2));
  EXPECT_THAT(matrix.group_offsets, ElementsAre(0, 2, 4));
  EXPECT_THAT(matrix.col_indices, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(matrix.values, ElementsAre(1, 7, 2, 8, 3, 5, 4, 6));
  EXPECT_EQ(matrix.nnz(), 8);
  EXPECT_TRUE(matrix.Validate().ok());
  EXPECT_EQ(matrix.ToDense().values, ExampleDense().values);
}

// Groups of rows of a drawn order that keep the same drawn columns.
DenseMatrix Draw(int64_t rows, int64_t cols, int64_t vector_rows, double sparsity, bool shuffled) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + cols * 7 + vector_rows));
  std::vector<uint32_t> order = RowsInOrder(rows);
  if (shuffled) std::shuffle(order.begin(), order.end(), random);
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  std::vector<uint8_t> kept(cols);
  std::bernoulli_distribution keeps(1 - sparsity);
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  for (int64_t place = 0; place < rows; ++place) {
    if (place % vector_rows == 0) std::ranges::generate(kept, [&] { return keeps(random) ? 1 : 0; });
    for (int64_t col = 0; col < cols; ++col) {
      if (kept[col] != 0) dense.values[order[place] * cols + col] = value(random);
    }
  }
  return dense;
}

TEST(ShflBwTest, RoundTrip) {
  struct Size {
    int64_t rows, cols, vector_rows;
  };
  for (const Size size : {Size{0, 0, 4}, {1, 1, 1}, {3, 0, 2}, {0, 5, 16}, {17, 31, 4}, {64, 100, 16}, {130, 40, 64}}) {
    for (const double sparsity : {0.0, 0.5, 0.9, 1.0}) {
      const DenseMatrix dense = Draw(size.rows, size.cols, 3, sparsity, true);
      std::vector<uint32_t> order = RowsInOrder(size.rows);
      std::ranges::reverse(order);
      const ShflBwMatrix matrix = ShflBwMatrix::FromDense(dense, size.vector_rows, order);
      EXPECT_TRUE(matrix.Validate().ok()) << matrix.Validate();
      EXPECT_EQ(matrix.nnz(), dense.nnz());
      EXPECT_EQ(matrix.ToDense().values, dense.values);
      std::vector<std::vector<uint32_t>> rows, expected;
      matrix.ForEachRow([&](int64_t, std::span<const uint32_t> cols) { rows.emplace_back(cols.begin(), cols.end()); });
      dense.ForEachRow(
          [&](int64_t, std::span<const uint32_t> cols) { expected.emplace_back(cols.begin(), cols.end()); });
      EXPECT_EQ(rows, expected);
    }
  }
}

TEST(ShflBwTest, StoredZeroIsLegal) {
  ShflBwMatrix matrix = Example();
  matrix.values[0] = 0;
  EXPECT_TRUE(matrix.Validate().ok());
  EXPECT_EQ(matrix.nnz(), 7);
}

using Malformation = MalformationOf<ShflBwMatrix>;

class ShflBwMalformedTest : public ::testing::TestWithParam<Malformation> {};

TEST_P(ShflBwMalformedTest, IsRejected) { ExpectRejected(Example(), GetParam()); }

using M = ShflBwMatrix;
INSTANTIATE_TEST_SUITE_P(
    All, ShflBwMalformedTest,
    ::testing::Values(
        Malformation{"NegativeRows", [](M& m) { m.rows = -1; }, "impossible dimensions -1 x 4"},
        Malformation{"HugeCols", [](M& m) { m.cols = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"NoVectorRows", [](M& m) { m.vector_rows = 0; }, "vectors of 0 rows"},
        Malformation{"HugeVectors", [](M& m) { m.vector_rows = int64_t{1} << 40; }, "rows; 1 to 1024"},
        Malformation{"OtherVectorRows", [](M& m) { m.vector_rows = 4; }, "1 groups has 3 group offsets, not 2"},
        Malformation{"ShortOrder", [](M& m) { m.row_order.pop_back(); }, "4 rows has an order of 3"},
        Malformation{"RowBeyondLast", [](M& m) { m.row_order[2] = 4; }, "place 2: row 4 is not below 4"},
        Malformation{"RowTwice", [](M& m) { m.row_order[3] = 0; }, "place 3: row 0 stands at another place too"},
        Malformation{"TooFewOffsets", [](M& m) { m.group_offsets.pop_back(); }, "2 group offsets, not 3"},
        Malformation{"NoOffsets", [](M& m) { m.group_offsets.clear(); }, "0 group offsets, not 3"},
        Malformation{"StartsLate", [](M& m) { m.group_offsets[0] = 1; }, "run from 1 to 4"},
        Malformation{"EndsLate", [](M& m) { m.group_offsets[2] = 5; }, "run from 0 to 5"},
        Malformation{"OffsetBeyondEnd", [](M& m) { m.group_offsets[1] = 9; }, "group 1: its offset 9"},
        Malformation{"TooFewColumns", [](M& m) { m.col_indices.pop_back(); }, "they must run from 0 to 3"},
        Malformation{"TooFewValues", [](M& m) { m.values.pop_back(); }, "7 values; 4 vectors of 2 rows have 8"},
        Malformation{"ColumnBeyondLast", [](M& m) { m.col_indices[1] = 4; }, "vector 1: column 4 is not below 4"},
        Malformation{"ColumnsUnsorted", [](M& m) { std::swap(m.col_indices[2], m.col_indices[3]); },
                     "group 1, vector 3: column 1 does not come after column 3"},
        Malformation{"ColumnTwice", [](M& m) { m.col_indices[1] = 0; }, "column 0 does not come after column 0"},
        Malformation{"ValuePastLastRow",
                     [](M& m) {
                       m = M::FromDense({1, 1, {5}}, 2, {0}), m.values[1] = 1;
                     },
                     "group 0, vector 0: a value past the last row is not zero"}),
    [](const auto& test) { return test.param.name; });

TEST(ShflBwTest, BytesOfPackedFile) { EXPECT_EQ(StoredBytes(Example()), 4 * 2 + 3 * 4 + 4 * 2 + 8 * 4u); }

TEST(ShflBwTest, StackedRows) {
  const ShflBwMatrix example = Example();
  const ShflBwMatrix* const both[] = {&example, &example};
  const auto stacked = ShflBwMatrix::StackRows(both);
  ASSERT_TRUE(stacked.has_value());
  EXPECT_TRUE(stacked->Validate().ok()) << stacked->Validate();
  std::vector<float> twice = ExampleDense().values;
  twice.insert(twice.end(), twice.begin(), twice.begin() + 16);
  EXPECT_EQ(stacked->ToDense().values, twice);
  const ShflBwMatrix odd = ShflBwMatrix::FromDense({3, 4, std::vector<float>(12, 1)}, 2, {0, 1, 2});
  const ShflBwMatrix* const cut[] = {&odd, &example};
  EXPECT_FALSE(ShflBwMatrix::StackRows(cut).has_value());
  const ShflBwMatrix longer = ShflBwMatrix::FromDense(ExampleDense(), 4, RowsInOrder(4));
  const ShflBwMatrix* const unlike[] = {&example, &longer};
  EXPECT_FALSE(ShflBwMatrix::StackRows(unlike).has_value());
}

TEST(FindRowGroupingTest, FindsVectorsWhateverTheOrder) {
  for (const int64_t vector_rows : {16, 32, 64, 128}) {
    for (const bool shuffled : {false, true}) {
      const DenseMatrix dense = Draw(384, 200, vector_rows, 0.8, shuffled);
      const auto grouping = FindRowGrouping(CsrMatrix::FromDense(dense));
      ASSERT_TRUE(grouping.has_value());
      EXPECT_EQ(grouping->vector_rows, vector_rows);
      EXPECT_EQ(grouping->fill, 1);
      if (!shuffled) {
        EXPECT_EQ(grouping->row_order, RowsInOrder(384));
      }
      const auto matrix = ShflBwMatrix::FromDense(dense);
      ASSERT_TRUE(matrix.ok());
      EXPECT_EQ(matrix->vectors() * vector_rows, dense.nnz());
      EXPECT_EQ(matrix->ToDense().values, dense.values);
    }
  }
}

TEST(FindRowGroupingTest, FewStraysAreStoredAsZerosAndManyRefused) {
  DenseMatrix dense = Draw(256, 200, 64, 0.8, false);
  dense.values[0] = dense.values[0] == 0 ? 1 : 0;
  const auto grouping = FindRowGrouping(WeightMatrix(dense));
  ASSERT_TRUE(grouping.has_value());
  EXPECT_EQ(grouping->vector_rows, 64);
  EXPECT_LT(grouping->fill, 1);
  const DenseMatrix drawn = Draw(256, 200, 1, 0.8, false);
  EXPECT_FALSE(FindRowGrouping(WeightMatrix(drawn)).has_value());
  EXPECT_THAT(std::string(ShflBwMatrix::FromDense(drawn).status().message()), HasSubstr("share too few columns"));
  EXPECT_FALSE(FindRowGrouping(WeightMatrix(DenseMatrix{4, 4, std::vector<float>(16)})).has_value());
}

// Rows that are left over of each pattern do not push the others' groups apart.
TEST(FindRowGroupingTest, RowsLeftOverStandLast) {
  DenseMatrix dense = Draw(640, 100, 64, 0.9, false);
  std::fill_n(dense.values.begin() + 3 * 100, 100, 0.0f);
  std::fill_n(dense.values.begin() + 70 * 100, 100, 0.0f);
  const auto grouping = FindRowGrouping(WeightMatrix(dense));
  ASSERT_TRUE(grouping.has_value());
  EXPECT_GE(grouping->fill, 0.9);
}

// Zeros a share of the nonzeros, as weights that were rounded to few steps have.
void Scatter(double share, DenseMatrix& dense) {
  std::mt19937 random(1);
  std::bernoulli_distribution zeroes(share);
  for (float& value : dense.values) {
    if (value != 0 && zeroes(random)) value = 0;
  }
}

struct ScatteredCase {
  int64_t rows, vector_rows;
  double sparsity, zeroed;
};

class FindRowGroupingScatteredTest : public ::testing::TestWithParam<ScatteredCase> {};

TEST_P(FindRowGroupingScatteredTest, BringsRowsTogetherThatAreAlike) {
  const auto [rows, vector_rows, sparsity, zeroed] = GetParam();
  DenseMatrix dense = Draw(rows, 512, vector_rows, sparsity, true);
  const int64_t ideal = dense.nnz();
  Scatter(zeroed, dense);
  const auto grouping = FindRowGrouping(CsrMatrix::FromDense(dense));
  ASSERT_TRUE(grouping.has_value());
  EXPECT_EQ(grouping->vector_rows, vector_rows);
  EXPECT_LE(static_cast<double>(dense.nnz()) / grouping->fill, 1.02 * static_cast<double>(ideal));
  const auto again = FindRowGrouping(WeightMatrix(dense));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->row_order, grouping->row_order);
  const auto matrix = ShflBwMatrix::FromDense(dense);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_TRUE(matrix->Validate().ok()) << matrix->Validate();
  EXPECT_EQ(matrix->ToDense().values, dense.values);
}

INSTANTIATE_TEST_SUITE_P(All, FindRowGroupingScatteredTest,
                         ::testing::Values(ScatteredCase{1000, 64, 0.9, 0.01}, ScatteredCase{1000, 64, 0.75, 0.01},
                                           ScatteredCase{1000, 32, 0.9, 0.01}, ScatteredCase{1000, 32, 0.75, 0.01},
                                           ScatteredCase{1024, 64, 0.9, 0.002}, ScatteredCase{1024, 128, 0.9, 0.05},
                                           ScatteredCase{1024, 16, 0.9, 0.01}, ScatteredCase{100, 64, 0.9, 0.01},
                                           ScatteredCase{1000, 64, 0.5, 0.2}));

// A row that is like no other, and one that has lost most of its nonzeros, do not push the others' groups apart.
TEST(FindRowGroupingTest, RowsLikeNoOtherStandLast) {
  DenseMatrix dense = Draw(1024, 500, 64, 0.9, true);
  Scatter(0.01, dense);
  for (int64_t col = 0; col < 450; ++col) dense.values[5 * 500 + col] = 0;
  std::fill_n(dense.values.begin() + 100 * 500, 500, 0.0f);
  for (int64_t col = 0; col < 500; ++col) dense.values[700 * 500 + col] = col % 16 == 0 ? 1.0f : 0.0f;
  const auto grouping = FindRowGrouping(WeightMatrix(dense));
  ASSERT_TRUE(grouping.has_value());
  EXPECT_EQ(grouping->vector_rows, 64);
  EXPECT_GE(grouping->fill, 0.92);
}

TEST(FindRowGroupingTest, DrawnZerosAreRefused) {
  for (const double sparsity : {0.9, 0.75, 0.5}) {
    const DenseMatrix drawn = Draw(1024, 512, 1, sparsity, false);
    EXPECT_FALSE(FindRowGrouping(CsrMatrix::FromDense(drawn)).has_value()) << sparsity;
  }
}

// Answers are kept for a while: asked late or soon again, each is of its own matrix, whose groups it fills.
TEST(FindRowGroupingTest, AnswersAreOfThePatternsAskedAbout) {
  std::vector<DenseMatrix> matrices;
  for (int64_t cols = 40; cols < 64; ++cols) matrices.push_back(Draw(64, cols, 16, 0.8, true));
  for (int turn = 0; turn < 2; ++turn) {
    for (const DenseMatrix& dense : matrices) {
      for (int again = 0; again < 2; ++again) {
        const std::optional<RowGrouping> found = FindRowGrouping(WeightMatrix(dense));
        ASSERT_TRUE(found.has_value()) << dense.cols;
        EXPECT_EQ(found->vector_rows, 16) << dense.cols;
        EXPECT_EQ(found->fill, 1.0) << dense.cols;
        const ShflBwMatrix grouped = ShflBwMatrix::FromDense(dense, found->vector_rows, found->row_order);
        EXPECT_EQ(static_cast<int64_t>(grouped.values.size()), WeightMatrix(dense).nnz()) << dense.cols;
      }
    }
  }
}

// The same columns in the same order, of rows of other lengths.
TEST(FindRowGroupingTest, LengthsOfRowsCount) {
  CsrMatrix ones_and_sevens{32, 8, {0}, {}, std::vector<float>(128, 1.0f)};
  for (uint32_t i = 0; i < 128; ++i) ones_and_sevens.col_indices.push_back(i % 8);
  CsrMatrix eights_and_none = ones_and_sevens;
  for (uint32_t pair = 0; pair < 16; ++pair) {
    for (const uint32_t end : {8 * pair + 1, 8 * pair + 8}) ones_and_sevens.row_offsets.push_back(end);
    for (const uint32_t end : {8 * pair + 8, 8 * pair + 8}) eights_and_none.row_offsets.push_back(end);
  }
  const auto first = FindRowGrouping(WeightMatrix(ones_and_sevens)),
             second = FindRowGrouping(WeightMatrix(eights_and_none));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(first->row_order[0], 0u);   // rows of one column come before those of others
  EXPECT_EQ(second->row_order[0], 1u);  // rows of none before those of eight
}

// What is found among stored zeros can be grouped, though without them it would not be found.
TEST(GroupRowsTest, StoredZerosCountAsInFindRowGrouping) {
  CsrMatrix csr{.rows = 64, .cols = 100, .row_offsets = {0}, .col_indices = {}, .values = {}};
  for (uint32_t row = 0; row < 64; ++row) {
    for (uint32_t col = 0; col < 10; ++col) {
      csr.col_indices.push_back(10 * col);
      csr.values.push_back(col == row % 10 ? 1.0f : 0.0f);
    }
    csr.row_offsets.push_back(static_cast<uint32_t>(csr.col_indices.size()));
  }
  const WeightMatrix matrix(csr);
  ASSERT_TRUE(FindRowGrouping(matrix).has_value());
  ASSERT_FALSE(FindRowGrouping(WeightMatrix(csr.ToDense())).has_value());
  const auto grouped = GroupRows(matrix);
  ASSERT_TRUE(grouped.ok()) << grouped.status();
  EXPECT_TRUE((*grouped)->Validate().ok());
  EXPECT_EQ((*grouped)->ToDense().values, csr.ToDense().values);
}

TEST(ShflBwTest, HoldsWhatHasLongVectors) {
  EXPECT_TRUE(ShflBwMatrix::Holds({.pattern = SparsityPattern::kRowVectors, .block_rows = 16}));
  EXPECT_TRUE(ShflBwMatrix::Holds({.pattern = SparsityPattern::kBlocks, .block_rows = 32, .block_cols = 32}));
  EXPECT_FALSE(ShflBwMatrix::Holds({.pattern = SparsityPattern::kRowVectors, .block_rows = 8}));
  EXPECT_FALSE(ShflBwMatrix::Holds({.pattern = SparsityPattern::kUnstructured}));
  EXPECT_FALSE(ShflBwMatrix::Holds({.pattern = SparsityPattern::kDense}));
}

}  // namespace
}  // namespace swizzle
