#include "kernels/format/hb_ell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/format/csr.h"
#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"
#include "tests/kernels/format/format_checks.h"

namespace swizzle {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;

// The header's worked example.
DenseMatrix ExampleDense() {
  return {.rows = 4, .cols = 4, .values = {0, 5, 0, 7, 1, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0}};
}

TEST(HbEllTest, WorkedExample) {
  const HbEllMatrix matrix = HbEllMatrix::FromDense(ExampleDense());
  EXPECT_THAT(matrix.block_row_pointers, ElementsAre(0, 1));
  EXPECT_THAT(matrix.block_cols, ElementsAre(0));
  EXPECT_THAT(matrix.widths, ElementsAre(4));
  EXPECT_THAT(matrix.columns, ElementsAre(0x31, 0x33, 0, 0, 0x21, 0x22, 0, 0));
  EXPECT_THAT(matrix.values, ElementsAre(5, 7, 0, 0, 1, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(matrix.nnz(), 5);
  EXPECT_TRUE(matrix.Validate().ok()) << matrix.Validate();
  EXPECT_EQ(matrix.ToDense().values, ExampleDense().values);
}

// Of each whole 16 x 16 block with probability `full` all entries, else single ones.
DenseMatrix Draw(int64_t rows, int64_t cols, double full, double scattered) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + cols * 7));
  std::bernoulli_distribution is_full(full), is_kept(scattered);
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  std::vector<bool> blocks((rows / 16 + 1) * (cols / 16 + 1));
  for (auto block : blocks) block = is_full(random);
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  for (int64_t i = 0; i < rows * cols; ++i) {
    const bool in_block = blocks[i / cols / 16 * (cols / 16 + 1) + i % cols / 16];
    if (is_kept(random) || in_block) dense.values[i] = value(random);
  }
  return dense;
}

TEST(HbEllTest, RoundTrip) {
  for (const int64_t rows : {0, 1, 7, 16, 33, 64}) {
    for (const int64_t cols : {0, 1, 18, 32, 65}) {
      for (const double scattered : {0.0, 0.05, 0.2, 0.5, 0.75, 1.0}) {
        const DenseMatrix dense = Draw(rows, cols, 0.3, scattered);
        const HbEllMatrix matrix = HbEllMatrix::FromDense(dense);
        EXPECT_TRUE(matrix.Validate().ok()) << matrix.Validate();
        EXPECT_EQ(matrix.nnz(), dense.nnz());
        EXPECT_EQ(matrix.ToDense().values, dense.values);
      }
    }
  }
}

// Rows of one to sixteen entries each.
TEST(HbEllTest, WidthsAreTheLongestRowsAndFullBlocksAreWhole) {
  for (int64_t longest = 1; longest <= 16; ++longest) {
    DenseMatrix dense{16, 16, std::vector<float>(256)};
    for (int64_t col = 0; col < longest; ++col) dense.values[5 * 16 + col] = 1;
    EXPECT_THAT(HbEllMatrix::FromDense(dense).widths, ElementsAre((longest + 3) / 4 * 4));
  }
  DenseMatrix dense{16, 16, std::vector<float>(256)};
  std::fill_n(dense.values.begin(), 192, 1.0f);
  EXPECT_THAT(HbEllMatrix::FromDense(dense).widths, ElementsAre(16));
  dense.values[200] = 1;
  const HbEllMatrix whole = HbEllMatrix::FromDense(dense);
  EXPECT_THAT(whole.widths, ElementsAre(HbEllMatrix::kWhole));
  EXPECT_EQ(whole.values, dense.values);
  EXPECT_TRUE(whole.columns.empty());
}

TEST(HbEllTest, HoldsBlocksInFewerBytesThanCsr) {
  const DenseMatrix dense = Draw(128, 256, 0.25, 0);
  EXPECT_THAT(FormatsThatHold(DetectStructure(dense)), Contains(Format::kHbEll)) << DetectStructure(dense).Name();
  EXPECT_THAT(HbEllMatrix::FromDense(dense).widths, Each(HbEllMatrix::kWhole));
  const WeightMatrix held = *WeightMatrix::FromDense(Format::kHbEll, dense);
  EXPECT_LT(held.StoredBytes(), WeightMatrix(CsrMatrix::FromDense(dense)).StoredBytes() * 3 / 4);
  EXPECT_THAT(FormatsThatHold(DetectStructure(Draw(128, 256, 0, 0.1))), Not(Contains(Format::kHbEll)));
}

// Half of the nonzeros in full blocks, half scattered, and fewer.
TEST(HbEllTest, HoldsFullBlocksWithStraysBesideThem) {
  const Structure hybrid = DetectStructure(Draw(256, 512, 0.05, 0.05));
  EXPECT_EQ(hybrid.pattern, SparsityPattern::kUnstructured);
  EXPECT_NEAR(hybrid.in_full_blocks, 0.5, 0.1);
  EXPECT_THAT(FormatsThatHold(hybrid), Contains(Format::kHbEll));
  const Structure strays = DetectStructure(Draw(256, 512, 0.02, 0.1));
  EXPECT_LT(strays.in_full_blocks, 1.0 / 3);
  EXPECT_THAT(FormatsThatHold(strays), Not(Contains(Format::kHbEll)));
  EXPECT_THAT(FormatsThatHold(DetectStructure(Draw(256, 512, 0, 0.85))), Not(Contains(Format::kHbEll)));
}

TEST(HbEllTest, VisitsRows) {
  std::vector<std::vector<uint32_t>> rows;
  const HbEllMatrix matrix = HbEllMatrix::FromDense(ExampleDense());
  matrix.ForEachRow([&](int64_t, std::span<const uint32_t> cols) { rows.emplace_back(cols.begin(), cols.end()); });
  EXPECT_THAT(rows, ElementsAre(ElementsAre(1, 3), ElementsAre(0), ElementsAre(1, 2), ElementsAre()));
}

TEST(HbEllTest, StacksRowsOfWholeBlocks) {
  const HbEllMatrix a = HbEllMatrix::FromDense(Draw(32, 40, 0.3, 0.1)),
                    b = HbEllMatrix::FromDense(Draw(9, 40, 0.3, 0.3));
  ExpectStackInOrder(a, b);
}

using Malformation = MalformationOf<HbEllMatrix>;

class HbEllMalformedTest : public ::testing::TestWithParam<Malformation> {};

// Of 20 x 24: whole, of width 4; none, of width 4 at the corner.
HbEllMatrix Malleable() {
  DenseMatrix dense{20, 24, std::vector<float>(20 * 24)};
  for (int64_t i = 0; i < 256; ++i) dense.values[i / 16 * 24 + i % 16] = 1;
  dense.values[17] = 2;
  dense.values[19] = 3;
  dense.values[18 * 24 + 23] = 4;
  return HbEllMatrix::FromDense(dense);
}

TEST_P(HbEllMalformedTest, IsRejected) {
  ASSERT_THAT(Malleable().widths, ElementsAre(0, 4, 4));
  ExpectRejected(Malleable(), GetParam());
}

using M = HbEllMatrix;
INSTANTIATE_TEST_SUITE_P(
    All, HbEllMalformedTest,
    ::testing::Values(
        Malformation{"NegativeRows", [](M& m) { m.rows = -1; }, "impossible dimensions -1 x 24"},
        Malformation{"HugeCols", [](M& m) { m.cols = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"HugeRows", [](M& m) { m.rows = (int64_t{1} << 32) - 1; }, "has 3 block row pointers"},
        Malformation{"TooFewPointers", [](M& m) { m.block_row_pointers.pop_back(); }, "has 2 block row pointers"},
        Malformation{"NoPointers", [](M& m) { m.block_row_pointers.clear(); }, "has 0 block row pointers"},
        Malformation{"LateBegin", [](M& m) { m.block_row_pointers[0] = 1; }, "do not rise from 0 to the 3 blocks"},
        Malformation{"FallingPointers", [](M& m) { m.block_row_pointers[1] = 4; }, "do not rise from 0"},
        Malformation{"PointersBeyond", [](M& m) { m.block_row_pointers[2] = ~0u; }, "do not rise from 0"},
        Malformation{"TooFewWidths", [](M& m) { m.widths.pop_back(); }, "has 2 widths of 3 blocks"},
        Malformation{"BlockTwice", [](M& m) { m.block_cols[1] = 0; }, "block column 0 does not come after 0"},
        Malformation{"BlockBeyond", [](M& m) { m.block_cols[1] = 2; }, "block column 2 does not come after 0 below 2"},
        Malformation{"OddWidth", [](M& m) { m.widths[1] = 5; }, "block 1 has a width of 5"},
        Malformation{"HugeWidth", [](M& m) { m.widths[1] = 20; }, "block 1 has a width of 20"},
        Malformation{"OtherWidth", [](M& m) { m.widths[1] = 8; }, "its blocks have 400 and 72"},
        Malformation{"WidthOfWhole", [](M& m) { m.widths[0] = 16; }, "its blocks have 336 and 168"},
        Malformation{"TooFewValues", [](M& m) { m.values.pop_back(); }, "has 335 values and 40 bytes"},
        Malformation{"TooFewColumns", [](M& m) { m.columns.pop_back(); }, "has 336 values and 39 bytes"},
        Malformation{"ColumnBeyond", [](M& m) { m.columns[0] = 0x91; }, "row 0, entry 1 of the block at column 16"},
        Malformation{"ColumnsFall", [](M& m) { m.columns[1] = 0x23; }, "column 18 does not come after 19"},
        Malformation{"FillingEnds", [](M& m) { m.columns[1] = 0x43; }, "column 20 does not come after 19"},
        Malformation{"FillingIsNoZero", [](M& m) { m.values[258] = 1; }, "what fills the row up is not zero"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace swizzle
