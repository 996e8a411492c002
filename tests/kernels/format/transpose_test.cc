#include "kernels/format/transpose.h"

#include <gtest/gtest.h>

#include <numeric>

namespace swizzle {
namespace {

// Of sizes around those of the squares that it works in.
TEST(TransposeTest, ColumnsBecomeRows) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{0, 3}, {1, 1}, {1, 40}, {40, 1}, {8, 8}, {17, 33}}) {
    std::vector<float> from(static_cast<size_t>(rows * cols));
    std::iota(from.begin(), from.end(), 0.0f);
    const std::vector<float> to = Transposed(from, rows, cols);
    ASSERT_EQ(to.size(), from.size());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) ASSERT_EQ(to[col * rows + row], from[row * cols + col]);
    }
  }
}

}  // namespace
}  // namespace swizzle
