#include "kernels/format/bitmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/format/csr.h"
#include "kernels/format/structure.h"
#include "kernels/format/weight_matrix.h"
#include "tests/kernels/format/format_checks.h"

namespace swizzle {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// The header's worked example.
DenseMatrix ExampleDense() {
  return {.rows = 4, .cols = 4, .values = {0, 5, 0, 7, 1, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0}};
}

TEST(BitmapTest, WorkedExample) {
  const BitmapMatrix matrix = BitmapMatrix::FromDense(ExampleDense());
  EXPECT_THAT(matrix.tiles, ElementsAre(1));
  EXPECT_THAT(matrix.bits, ElementsAre(0b0010, 0b0101, 0b0100, 0b0001, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(matrix.values, ElementsAre(1, 5, 2, 3, 7));
  EXPECT_TRUE(matrix.Validate().ok()) << matrix.Validate();
  EXPECT_EQ(matrix.ToDense().values, ExampleDense().values);
}

DenseMatrix Draw(int64_t rows, int64_t cols, double density) {
  std::mt19937 random(static_cast<unsigned>(rows * 31 + cols * 7));
  std::bernoulli_distribution is_kept(density);
  std::uniform_real_distribution<float> value(0.5f, 1.0f);
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  for (float& v : dense.values) {
    if (is_kept(random)) v = value(random);
  }
  return dense;
}

TEST(BitmapTest, RoundTrip) {
  for (const int64_t rows : {0, 1, 31, 32, 65, 96}) {
    for (const int64_t cols : {0, 1, 16, 17, 512, 530}) {
      for (const double density : {0.0, 0.002, 0.1, 0.5, 1.0}) {
        const DenseMatrix dense = Draw(rows, cols, density);
        const BitmapMatrix matrix = BitmapMatrix::FromDense(dense);
        EXPECT_TRUE(matrix.Validate().ok()) << matrix.Validate();
        EXPECT_EQ(matrix.nnz(), dense.nnz());
        EXPECT_EQ(matrix.ToDense().values, dense.values);
      }
    }
  }
}

TEST(BitmapTest, EmptyTilesAreLeftOut) {
  DenseMatrix dense{64, 48, std::vector<float>(64 * 48)};
  dense.values[33 * 48 + 47] = 2;
  const BitmapMatrix matrix = BitmapMatrix::FromDense(dense);
  EXPECT_THAT(matrix.tiles, ElementsAre(0, 0b100));
  EXPECT_EQ(matrix.bits.size(), 16u);
  EXPECT_EQ(matrix.bits.back(), 0b10u);
}

TEST(BitmapTest, HoldsScatteredZerosInFewerBytesThanCsr) {
  const DenseMatrix dense = Draw(128, 256, 0.3);
  EXPECT_THAT(FormatsThatHold(DetectStructure(dense)), Contains(Format::kBitmap));
  const WeightMatrix held = *WeightMatrix::FromDense(Format::kBitmap, dense);
  EXPECT_LT(held.StoredBytes(), WeightMatrix(CsrMatrix::FromDense(dense)).StoredBytes() * 4 / 5);
  EXPECT_THAT(FormatsThatHold(DetectStructure(Draw(128, 256, 1))), Not(Contains(Format::kBitmap)));
}

TEST(BitmapTest, VisitsRows) {
  std::vector<std::vector<uint32_t>> rows;
  const BitmapMatrix matrix = BitmapMatrix::FromDense(ExampleDense());
  matrix.ForEachRow([&](int64_t, std::span<const uint32_t> cols) { rows.emplace_back(cols.begin(), cols.end()); });
  EXPECT_THAT(rows, ElementsAre(ElementsAre(1, 3), ElementsAre(0), ElementsAre(1, 2), ElementsAre()));
}

TEST(BitmapTest, StacksRowsOfWholeTiles) {
  const BitmapMatrix a = BitmapMatrix::FromDense(Draw(32, 40, 0.1)), b = BitmapMatrix::FromDense(Draw(9, 40, 0.3));
  ExpectStackInOrder(a, b);
}

using Malformation = MalformationOf<BitmapMatrix>;

class BitmapMalformedTest : public ::testing::TestWithParam<Malformation> {};

// Of 40 x 20: three of the four tiles hold something.
BitmapMatrix Malleable() {
  DenseMatrix dense{40, 20, std::vector<float>(40 * 20)};
  dense.values[0] = 1;
  dense.values[35 * 20 + 3] = 2;
  dense.values[39 * 20 + 19] = 3;
  return BitmapMatrix::FromDense(dense);
}

TEST_P(BitmapMalformedTest, IsRejected) {
  ASSERT_THAT(Malleable().tiles, ElementsAre(0b01, 0b11));
  ExpectRejected(Malleable(), GetParam());
}

using M = BitmapMatrix;
INSTANTIATE_TEST_SUITE_P(
    All, BitmapMalformedTest,
    ::testing::Values(
        Malformation{"NegativeRows", [](M& m) { m.rows = -1; }, "impossible dimensions -1 x 20"},
        Malformation{"HugeCols", [](M& m) { m.cols = int64_t{1} << 40; }, "impossible dimensions"},
        Malformation{"HugeRows", [](M& m) { m.rows = (int64_t{1} << 32) - 1; }, "has 2 words for them"},
        Malformation{"TooFewTileWords", [](M& m) { m.tiles.pop_back(); }, "2 x 2 tiles has 1 words for them, not 2"},
        Malformation{"TileBeyond", [](M& m) { m.tiles[1] |= 4; }, "row 1 of tiles: a tile lies past the last, 1"},
        Malformation{"OneMoreTile", [](M& m) { m.tiles[0] |= 2; }, "has 48 words of bits; its 4 tiles have 64"},
        Malformation{"OneTileLess", [](M& m) { m.tiles[0] = 0; }, "its 2 tiles have 32"},
        Malformation{"TooFewBits", [](M& m) { m.bits.pop_back(); }, "has 47 words of bits"},
        Malformation{"RowBeyond", [](M& m) { m.bits[19] |= 1 << 8; }, "column 3 of row 1 of tiles: a bit lies past"},
        Malformation{"ColumnBeyond", [](M& m) { m.bits[36] = 1; }, "column 20 of row 1 of tiles: a bit lies past"},
        Malformation{"EmptyTile", [](M& m) { m.bits[0] = 0; }, "tile 0, 0 holds nothing"},
        Malformation{"OneMoreBit", [](M& m) { m.bits[1] = 1; }, "has 3 values of 4 bits"},
        Malformation{"TooFewValues", [](M& m) { m.values.pop_back(); }, "has 2 values of 3 bits"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace swizzle
