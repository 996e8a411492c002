#include "model_loader/pack/weight_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/format/csr.h"

namespace swizzle::pack {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

Weight Make(int64_t rows, int64_t cols, const std::function<bool(int64_t, int64_t)>& keep) {
  DenseMatrix matrix{.rows = rows, .cols = cols, .values = std::vector<float>(rows * cols)};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) matrix.values[row * cols + col] = keep(row, col) ? -1.0f : 0.0f;
  }
  return {.matrix = std::move(matrix), .bias = {}};
}

// The same from both formats.
WeightPicture Draw(const Weight& weight) {
  WeightPicture dense = DrawWeight(weight);
  const WeightPicture sparse = DrawWeight({.matrix = CsrMatrix::FromDense(weight.ToDense()), .bias = {}});
  EXPECT_EQ(dense.density, sparse.density);
  EXPECT_EQ(dense.corner, sparse.corner);
  return dense;
}

TEST(WeightPicture, SmallWeightsAreShownAsTheyAre) {
  const WeightPicture picture = Draw(Make(2, 5, [](int64_t row, int64_t col) { return (row + col) % 2 == 0; }));
  EXPECT_EQ(picture.rows, 2);
  EXPECT_EQ(picture.cols, 5);
  EXPECT_EQ(picture.density, "/A/A/A/A/A");
  EXPECT_EQ(picture.corner_rows, 2);
  EXPECT_EQ(picture.corner_cols, 5);
  EXPECT_THAT(picture.corner, ElementsAre("a8", "50"));
}

TEST(WeightPicture, TheCornerIsTheTopLeft) {
  const WeightPicture picture =
      Draw(Make(200, 300, [](int64_t row, int64_t col) { return row == 0 || col == 63 || col == 64 || row == 64; }));
  ASSERT_EQ(picture.corner.size(), 64u);
  EXPECT_EQ(picture.corner[0], "ffffffffffffffff");
  EXPECT_EQ(picture.corner[1], "0000000000000001");
  EXPECT_EQ(picture.corner[63], "0000000000000001");
}

TEST(WeightPicture, LargeWeightsAreCountedByCells) {
  // 192 x 960 in 96 x 96 cells of 2 x 10.
  const WeightPicture picture = Draw(Make(192, 960, [](int64_t row, int64_t col) {
    if (row < 2) return true;
    if (row < 4) return row == 2 && col % 10 == 3;
    if (row < 6) return !(row == 4 && col % 10 == 3);
    return row == 6;
  }));
  EXPECT_EQ(picture.rows, 96);
  EXPECT_EQ(picture.cols, 96);
  ASSERT_EQ(picture.density.size(), 96u * 96);
  const auto line = [&](int64_t row) { return picture.density.substr(row * 96, 96); };
  EXPECT_THAT(line(0), Each('/')) << "all of 20";
  EXPECT_THAT(line(1), Each('D')) << "1 of 20 is 3 of 63";
  EXPECT_THAT(line(2), Each('7')) << "19 of 20 is 59 of 63";
  EXPECT_THAT(line(3), Each('f')) << "10 of 20 is 31 of 63";
  EXPECT_THAT(line(95), Each('A')) << "none";
}

TEST(WeightPicture, OneNonzeroIsSeenAndOneZeroToo) {
  const WeightPicture picture =
      Draw(Make(9600, 96, [](int64_t row, int64_t col) { return col == 1 ? row % 100 == 0 : row % 100 != 0; }));
  EXPECT_EQ(picture.density[1], 'B') << "1 of 100 is less than 1 of 63";
  EXPECT_EQ(picture.density[0], '+') << "99 of 100 is 62 of 63";
}

TEST(WeightPicture, EveryElementIsInACellWhateverTheSize) {
  for (int64_t size : {1, 63, 64, 65, 95, 96, 97, 100, 191, 193, 1000}) {
    const WeightPicture full = Draw(Make(size, 7, [](int64_t, int64_t) { return true; }));
    EXPECT_THAT(full.density, Each('/')) << size;
    const WeightPicture last = Draw(Make(7, size, [&](int64_t, int64_t col) { return col == size - 1; }));
    EXPECT_NE(last.density[last.cols - 1], 'A') << size;
    EXPECT_EQ(last.density.find_first_not_of('A'), static_cast<size_t>(last.cols - 1)) << size;
  }
}

}  // namespace
}  // namespace swizzle::pack
