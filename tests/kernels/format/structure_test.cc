#include "kernels/format/structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/format/csr.h"

namespace swizzle {
namespace {

using Rng = std::mt19937;
using Keep = std::function<bool(int64_t row, int64_t col)>;

bool Chance(Rng& rng, double probability) { return std::bernoulli_distribution(probability)(rng); }

DenseMatrix Draw(int64_t rows, int64_t cols, Rng& rng, const Keep& keep) {
  DenseMatrix matrix{.rows = rows, .cols = cols, .values = std::vector<float>(rows * cols)};
  std::uniform_real_distribution<float> value(0.1f, 1.0f);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      if (keep(row, col)) matrix.values[row * cols + col] = value(rng);
    }
  }
  return matrix;
}

DenseMatrix DrawUnstructured(int64_t rows, int64_t cols, double density, Rng& rng) {
  return Draw(rows, cols, rng, [&](int64_t, int64_t) { return Chance(rng, density); });
}

// Aligned blocks, cut off at the edges; input channels lie `taps` columns apart.
DenseMatrix DrawBlocks(int64_t rows, int64_t cols, int64_t block_rows, int64_t block_cols, double density, Rng& rng,
                       int64_t taps = 1) {
  const int64_t across = CeilDiv(cols / taps, block_cols), down = CeilDiv(rows, block_rows);
  std::vector<bool> kept(down * across * taps);
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = Chance(rng, density);
  return Draw(rows, cols, rng, [&](int64_t row, int64_t col) {
    return kept[(row / block_rows * across + col / taps / block_cols) * taps + col % taps];
  });
}

// Exactly n of m neighbouring channels.
DenseMatrix DrawNOfM(int64_t rows, int64_t cols, int64_t n, int64_t m, Rng& rng, int64_t taps = 1) {
  std::vector<bool> kept(rows * cols);
  std::vector<int64_t> places(m);
  std::iota(places.begin(), places.end(), 0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t first = 0; first < cols / taps; first += m) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        std::shuffle(places.begin(), places.end(), rng);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t channel = first + places[i];
          if (channel < cols / taps) kept[row * cols + channel * taps + tap] = true;
        }
      }
    }
  }
  return Draw(rows, cols, rng, [&](int64_t row, int64_t col) { return kept[row * cols + col]; });
}

// Groups of `length` rows with equal places, in drawn order.
DenseMatrix DrawRowVectors(int64_t rows, int64_t cols, int64_t length, double density, Rng& rng) {
  std::vector<int64_t> group_of(rows);
  for (int64_t row = 0; row < rows; ++row) group_of[row] = row / length;
  std::shuffle(group_of.begin(), group_of.end(), rng);
  std::vector<bool> kept(rows * cols);
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = Chance(rng, density);
  return Draw(rows, cols, rng, [&](int64_t row, int64_t col) { return kept[group_of[row] * cols + col]; });
}

// The same from both formats.
Structure Detect(const DenseMatrix& matrix, int64_t taps = 1) {
  const Structure dense = DetectStructure(matrix, taps);
  const Structure sparse = DetectStructure(CsrMatrix::FromDense(matrix), taps);
  EXPECT_EQ(dense.Name(), sparse.Name());
  EXPECT_EQ(dense.fill, sparse.fill);
  EXPECT_EQ(dense.bytes, sparse.bytes);
  EXPECT_EQ(dense.zero_rows, sparse.zero_rows);
  EXPECT_EQ(dense.zero_cols, sparse.zero_cols);
  EXPECT_EQ(dense.zero_channels, sparse.zero_channels);
  return dense;
}

// Writes a value to the first place that is zero.
void AddStray(DenseMatrix& matrix) {
  const auto place = std::find(matrix.values.begin(), matrix.values.end(), 0.0f);
  ASSERT_NE(place, matrix.values.end());
  *place = 1.0f;
}

TEST(Structure, DenseAndUnstructured) {
  Rng rng(1);
  EXPECT_EQ(Detect(DrawUnstructured(100, 70, 1.0, rng)).Name(), "dense");
  EXPECT_EQ(Detect(DrawUnstructured(100, 70, 0.98, rng)).Name(), "dense");
  for (double density : {0.9, 0.75, 0.5, 0.25, 0.1, 0.02, 0.002}) {
    const Structure structure = Detect(DrawUnstructured(128, 288, density, rng), 9);
    EXPECT_EQ(structure.Name(), "unstructured") << density;
    EXPECT_EQ(structure.fill, 1.0);
  }
}

TEST(Structure, DenseBytesAndUnstructuredBytes) {
  Rng rng(2);
  EXPECT_EQ(Detect(DrawUnstructured(10, 20, 1.0, rng)).bytes, 10 * 20 * 4);
  const DenseMatrix sparse = DrawUnstructured(64, 64, 0.3, rng);
  EXPECT_EQ(Detect(sparse).bytes, static_cast<int64_t>(StoredBytes(CsrMatrix::FromDense(sparse))));
}

struct BlockCase {
  int64_t block_rows, block_cols;
  const char* name;
};

class Blocks : public ::testing::TestWithParam<BlockCase> {};

INSTANTIATE_TEST_SUITE_P(Shapes, Blocks,
                         ::testing::Values(BlockCase{1, 4, "1x4 blocks"}, BlockCase{1, 8, "1x8 blocks"},
                                           BlockCase{4, 1, "4x1 blocks"}, BlockCase{8, 1, "8x1 blocks"},
                                           BlockCase{16, 16, "16x16 blocks"}, BlockCase{32, 32, "32x32 blocks"}));

TEST_P(Blocks, AreFoundAtAnyDensity) {
  const BlockCase& block = GetParam();
  for (double density : {0.1, 0.5, 0.8}) {
    Rng rng(3);
    const Structure structure = Detect(DrawBlocks(256, 320, block.block_rows, block.block_cols, density, rng));
    EXPECT_EQ(structure.Name(), block.name) << density;
    EXPECT_EQ(structure.block_rows, block.block_rows);
    EXPECT_EQ(structure.block_cols, block.block_cols);
    EXPECT_EQ(structure.fill, 1.0);
  }
}

TEST_P(Blocks, AreCutOffAtTheEdges) {
  const BlockCase& block = GetParam();
  Rng rng(4);
  const Structure structure = Detect(DrawBlocks(197, 203, block.block_rows, block.block_cols, 0.3, rng));
  EXPECT_EQ(structure.Name(), block.name);
  EXPECT_EQ(structure.fill, 1.0);
}

TEST_P(Blocks, LieAlongInputChannelsAtOneTap) {
  const BlockCase& block = GetParam();
  Rng rng(5);
  const DenseMatrix matrix = DrawBlocks(128, 128 * 9, block.block_rows, block.block_cols, 0.2, rng, 9);
  EXPECT_EQ(Detect(matrix, 9).Name(), block.name);
  if (block.block_cols > 1) {
    EXPECT_NE(Detect(matrix, 1).Name(), block.name);
  }
}

TEST_P(Blocks, MayHoldZerosAndLeaveAStrayOut) {
  const BlockCase& block = GetParam();
  Rng rng(6);
  DenseMatrix matrix = DrawBlocks(512, 512, block.block_rows, block.block_cols, 0.3, rng);
  for (float& value : matrix.values) {
    if (Chance(rng, 0.1)) value = 0.0f;
  }
  AddStray(matrix);
  const Structure structure = Detect(matrix);
  EXPECT_EQ(structure.Name(), block.name);
  EXPECT_NEAR(structure.fill, 0.9, 0.02);
}

TEST_P(Blocks, AreNotClaimedWhereHalfOfThemIsZero) {
  const BlockCase& block = GetParam();
  Rng rng(7);
  DenseMatrix matrix = DrawBlocks(512, 512, block.block_rows, block.block_cols, 0.3, rng);
  for (float& value : matrix.values) {
    if (Chance(rng, 0.5)) value = 0.0f;
  }
  EXPECT_EQ(Detect(matrix).Name(), "unstructured");
}

TEST(Structure, StraysCostALargeBlockMoreThanItIsWorth) {
  Rng rng(8);
  DenseMatrix matrix = DrawBlocks(64, 64, 32, 32, 0.0, rng);
  for (int64_t row = 0; row < 32; ++row) std::fill_n(matrix.values.begin() + row * 64, 32, 1.0f);
  EXPECT_EQ(Detect(matrix).Name(), "zero rows+cols");
  matrix.values[63 * 64 + 63] = 1.0f;
  const Structure structure = Detect(matrix);
  EXPECT_EQ(structure.Name(), "8x1 blocks") << "16x16 takes a fifth more";
  EXPECT_EQ(structure.fill, 1025.0 / 1032.0);
}

TEST(Structure, BlockBytesAreValuesIndicesAndOffsets) {
  Rng rng(9);
  const DenseMatrix matrix = DrawBlocks(64, 64, 16, 16, 0.4, rng);
  const int64_t blocks = matrix.nnz() / 256;
  ASSERT_GT(blocks, 0);
  EXPECT_EQ(Detect(matrix).bytes, blocks * (256 * 4 + 2) + 5 * 4);
}

TEST(Structure, ZeroRowsAndColumns) {
  Rng rng(10);
  const Structure rows = Detect(Draw(40, 30, rng, [](int64_t row, int64_t) { return row % 4 != 1; }));
  EXPECT_EQ(rows.Name(), "zero rows");
  EXPECT_EQ(rows.zero_rows, 10);
  EXPECT_EQ(rows.zero_cols, 0);
  EXPECT_EQ(rows.bytes, 30 * 30 * 4 + (30 + 30) * 4);
  const Structure cols = Detect(Draw(40, 30, rng, [](int64_t, int64_t col) { return col % 3 != 1; }));
  EXPECT_EQ(cols.Name(), "zero columns");
  EXPECT_EQ(cols.zero_cols, 10);
  EXPECT_EQ(cols.zero_channels, 10);
  const Structure both = Detect(Draw(40, 30, rng, [](int64_t row, int64_t col) { return row > 3 && col > 7; }));
  EXPECT_EQ(both.Name(), "zero rows+cols");
  EXPECT_EQ(both.zero_rows, 4);
  EXPECT_EQ(both.zero_cols, 8);
  EXPECT_EQ(both.fill, 1.0);
}

TEST(Structure, OneZeroRowAmongManyIsEnough) {
  Rng rng(11);
  EXPECT_EQ(Detect(Draw(500, 30, rng, [](int64_t row, int64_t) { return row != 499; })).Name(), "zero rows");
}

TEST(Structure, AStrayBringsARowBack) {
  Rng rng(12);
  DenseMatrix matrix = Draw(64, 64, rng, [](int64_t row, int64_t) { return row >= 16; });
  AddStray(matrix);
  const Structure structure = Detect(matrix);
  EXPECT_EQ(structure.Name(), "zero rows");
  EXPECT_EQ(structure.zero_rows, 15);
  EXPECT_EQ(structure.fill, (48.0 * 64 + 1) / (49 * 64));
}

TEST(Structure, AnInputChannelIsZeroIfAllItsTapsAre) {
  Rng rng(13);
  const Structure structure =
      Detect(Draw(32, 16 * 9, rng, [](int64_t, int64_t col) { return col / 9 != 3 && col / 9 != 7 && col != 5; }), 9);
  EXPECT_EQ(structure.Name(), "zero columns");
  EXPECT_EQ(structure.zero_cols, 19);
  EXPECT_EQ(structure.zero_channels, 2);
}

TEST(Structure, ZeroLinesAreCountedWhateverThePattern) {
  Rng rng(14);
  const auto drop = [](DenseMatrix matrix) {
    for (int64_t col = 0; col < matrix.cols; ++col) matrix.values[5 * matrix.cols + col] = 0.0f;
    for (int64_t row = 0; row < matrix.rows; ++row) matrix.values[row * matrix.cols + 9] = 0.0f;
    return matrix;
  };
  const DenseMatrix matrices[] = {DrawUnstructured(64, 64, 0.4, rng), DrawBlocks(64, 64, 1, 4, 0.4, rng),
                                  DrawNOfM(64, 64, 2, 4, rng)};
  for (const DenseMatrix& matrix : matrices) {
    const Structure before = Detect(matrix), after = Detect(drop(matrix));
    EXPECT_EQ(after.Name(), before.Name());
    EXPECT_EQ(before.zero_rows + before.zero_cols, 0);
    EXPECT_EQ(after.zero_rows, 1);
    EXPECT_EQ(after.zero_cols, 1);
  }
}

TEST(Structure, NOfM) {
  Rng rng(15);
  for (const auto& [n, m] : {std::pair{1, 4}, {2, 4}, {1, 8}, {2, 8}, {4, 8}}) {
    const Structure structure = Detect(DrawNOfM(64, 128, n, m, rng));
    EXPECT_EQ(structure.Name(), std::to_string(n) + ":" + std::to_string(m));
    EXPECT_EQ(structure.n, n);
    EXPECT_EQ(structure.m, m);
    EXPECT_EQ(structure.fill, 1.0);
    EXPECT_EQ(structure.bytes, 64 * 128 * n / m * 4 + 64 * 128 * n / m * (m == 4 ? 2 : 3) / 8);
  }
}

TEST(Structure, NOfMRunsAlongInputChannelsAtOneTap) {
  Rng rng(16);
  const DenseMatrix matrix = DrawNOfM(32, 32 * 9, 2, 4, rng, 9);
  EXPECT_EQ(Detect(matrix, 9).Name(), "2:4");
  EXPECT_EQ(Detect(matrix, 1).Name(), "unstructured");
}

TEST(Structure, NOfMMayHoldZerosAndEndWithinAGroup) {
  Rng rng(17);
  DenseMatrix matrix = DrawNOfM(64, 130, 2, 4, rng);
  for (float& value : matrix.values) {
    if (Chance(rng, 0.1)) value = 0.0f;
  }
  const Structure structure = Detect(matrix);
  EXPECT_EQ(structure.Name(), "2:4");
  EXPECT_NEAR(structure.fill, 0.9, 0.03);
}

TEST(Structure, OneNonzeroTooManyIsNot2Of4) {
  Rng rng(18);
  DenseMatrix matrix = DrawNOfM(64, 128, 2, 4, rng);
  AddStray(matrix);
  EXPECT_NE(Detect(matrix).Name(), "2:4");
}

TEST(Structure, AFewGroupsAreNo2Of4) {
  Rng rng(19);
  EXPECT_EQ(Detect(DrawNOfM(4, 4 * 7, 2, 4, rng)).Name(), "unstructured");
  EXPECT_EQ(Detect(DrawNOfM(4, 4 * 8, 2, 4, rng)).Name(), "2:4");
}

TEST(Structure, RowVectorsInAnyOrder) {
  Rng rng(20);
  for (int64_t length : {4, 8, 16}) {
    for (double density : {0.1, 0.5}) {
      const Structure structure = Detect(DrawRowVectors(160, 200, length, density, rng));
      EXPECT_EQ(structure.Name(), std::to_string(length) + "-row vectors") << density;
      EXPECT_EQ(structure.block_rows, length);
      EXPECT_EQ(structure.fill, 1.0);
    }
  }
}

TEST(Structure, RowVectorsLastGroupMayBeIncomplete) {
  Rng rng(21);
  const DenseMatrix matrix = DrawRowVectors(8 * 20 + 3, 100, 8, 0.3, rng);
  const Structure structure = Detect(matrix);
  EXPECT_EQ(structure.Name(), "8-row vectors");
  EXPECT_LT(structure.fill, 1.0);
  EXPECT_GT(structure.fill, 0.95);
}

TEST(Structure, RowVectorsWithAStrayKeepAllOtherGroups) {
  Rng rng(22);
  DenseMatrix matrix = DrawRowVectors(128, 200, 8, 0.3, rng);
  AddStray(matrix);
  const Structure structure = Detect(matrix);
  EXPECT_EQ(structure.Name(), "8-row vectors");
  EXPECT_LT(structure.fill, 0.97);
}

TEST(Structure, RowsThatDifferEverywhereAreNoVectors) {
  Rng rng(23);
  DenseMatrix matrix = DrawRowVectors(128, 200, 8, 0.3, rng);
  for (int64_t row = 0; row < 128; ++row) {
    float& value = matrix.values[row * 200 + row];
    value = value == 0.0f ? 1.0f : 0.0f;
  }
  EXPECT_EQ(Detect(matrix).Name(), "unstructured");
}

TEST(Structure, RowsInOrderAreBlocksRatherThanVectors) {
  Rng rng(24);
  EXPECT_EQ(Detect(DrawBlocks(64, 256, 4, 1, 0.2, rng)).Name(), "4x1 blocks") << "needs no permutation";
}

TEST(Structure, NothingAtAll) {
  for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 5}, {5, 0}}) {
    const Structure structure = Detect(DenseMatrix{.rows = rows, .cols = cols, .values = {}});
    EXPECT_EQ(structure.Name(), "dense");
    EXPECT_EQ(structure.bytes, 0);
  }
}

TEST(Structure, AllZero) {
  Rng rng(25);
  const Structure structure = Detect(Draw(6, 36, rng, [](int64_t, int64_t) { return false; }), 9);
  EXPECT_EQ(structure.Name(), "zero rows+cols");
  EXPECT_EQ(structure.zero_rows, 6);
  EXPECT_EQ(structure.zero_cols, 36);
  EXPECT_EQ(structure.zero_channels, 4);
  EXPECT_EQ(structure.bytes, 0);
}

TEST(Structure, OneRowAndOneColumn) {
  Rng rng(26);
  EXPECT_EQ(Detect(DrawUnstructured(1, 1, 1.0, rng)).Name(), "dense");
  EXPECT_EQ(Detect(DrawUnstructured(1, 100, 1.0, rng)).Name(), "dense");
  EXPECT_EQ(Detect(Draw(1, 100, rng, [](int64_t, int64_t col) { return col % 7 < 3; })).Name(), "zero columns");
  EXPECT_EQ(Detect(Draw(100, 1, rng, [](int64_t row, int64_t) { return row % 7 < 3; })).Name(), "zero rows");
}

TEST(Structure, DepthwiseFiltersHaveNoBlocksAlongChannels) {
  Rng rng(27);
  EXPECT_EQ(Detect(DrawUnstructured(64, 9, 0.5, rng), 9).Name(), "unstructured");
}

TEST(Structure, StoredZerosOfACsrMatrixCount) {
  const CsrMatrix matrix{
      .rows = 2, .cols = 2, .row_offsets = {0, 2, 4}, .col_indices = {0, 1, 0, 1}, .values = {0, 0, 0, 1}};
  EXPECT_EQ(DetectStructure(matrix).Name(), "dense");
}

TEST(Structure, NamesFitATable) {
  for (int64_t size : {1, 4, 8, 16, 32}) {
    for (int pattern = 0; pattern <= static_cast<int>(SparsityPattern::kUnstructured); ++pattern) {
      const Structure structure{.pattern = static_cast<SparsityPattern>(pattern),
                                .block_rows = size,
                                .block_cols = size,
                                .n = 2,
                                .m = 4,
                                .zero_rows = 1,
                                .zero_cols = 1};
      EXPECT_LE(structure.Name().size(), 14u) << structure.Name();
      EXPECT_NE(SparsityPatternName(structure.pattern), "?");
    }
  }
}

}  // namespace
}  // namespace swizzle
