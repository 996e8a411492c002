#include "kernels/format/transpose.h"

#include <algorithm>

namespace swizzle {

void Transpose(std::span<const float> from, int64_t rows, int64_t cols, std::span<float> to) {
  // Squares of which a first-level cache holds the lines of both: whole matrices would miss it with each element.
  constexpr int64_t kSquare = 8;
  for (int64_t first_row = 0; first_row < rows; first_row += kSquare) {
    const int64_t end_row = std::min(first_row + kSquare, rows);
    for (int64_t first_col = 0; first_col < cols; first_col += kSquare) {
      const int64_t end_col = std::min(first_col + kSquare, cols);
      for (int64_t col = first_col; col < end_col; ++col) {
        for (int64_t row = first_row; row < end_row; ++row) to[col * rows + row] = from[row * cols + col];
      }
    }
  }
}

std::vector<float> Transposed(std::span<const float> from, int64_t rows, int64_t cols) {
  std::vector<float> to(from.size());
  Transpose(from, rows, cols, to);
  return to;
}

}  // namespace swizzle
