#include "model_loader/pack/weight_picture.h"

#include <algorithm>
#include <variant>

#include "kernels/base/integers.h"

namespace swizzle::pack {
namespace {

constexpr int64_t kMostCells = 96;
constexpr int64_t kCorner = 64;
constexpr char kLevels[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int64_t kFull = 63;

template <typename Visit>
void ForEachNonzero(const DenseMatrix& matrix, const Visit& visit) {
  const float* value = matrix.values.data();
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      if (*value++ != 0.0f) visit(row, col);
    }
  }
}

template <typename Visit>
void ForEachNonzero(const CsrMatrix& matrix, const Visit& visit) {
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (uint32_t i = matrix.row_offsets[row]; i < matrix.row_offsets[row + 1]; ++i) visit(row, matrix.col_indices[i]);
  }
}

template <typename Visit>
void ForEachNonzero(const AttentionPattern& pattern, const Visit& visit) {
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (uint32_t key : pattern.Keys(query)) visit(query, key);
  }
}

// Which of `cells` each of `lines` rows or columns falls into.
class Cells {
 public:
  Cells(int64_t lines, int64_t cells) : of_(lines), sizes_(cells) {
    for (int64_t cell = 0, line = 0; cell < cells; ++cell) {
      const int64_t end = (cell + 1) * lines / cells;
      sizes_[cell] = end - line;
      while (line < end) of_[line++] = static_cast<int32_t>(cell);
    }
  }
  int64_t Of(int64_t line) const { return of_[line]; }
  int64_t SizeOf(int64_t cell) const { return sizes_[cell]; }

 private:
  std::vector<int32_t> of_;
  std::vector<int64_t> sizes_;
};

char Level(int64_t nonzeros, int64_t elements) {
  if (nonzeros == 0) return kLevels[0];
  if (nonzeros == elements) return kLevels[kFull];
  return kLevels[std::clamp<int64_t>(nonzeros * kFull / elements, 1, kFull - 1)];
}

void SetBit(std::string& digits, int64_t col) {
  static constexpr char kDigits[] = "0123456789abcdef";
  char& digit = digits[col / 4];
  const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
  digit = kDigits[value | 8 >> col % 4];
}

}  // namespace

WeightPicture DrawWeight(const Weight& weight) {
  WeightPicture picture;
  picture.rows = std::min(weight.rows(), kMostCells);
  picture.cols = std::min(weight.cols(), kMostCells);
  picture.corner_rows = std::min(weight.rows(), kCorner);
  picture.corner_cols = std::min(weight.cols(), kCorner);
  picture.corner.assign(picture.corner_rows, std::string(CeilDiv(picture.corner_cols, 4), '0'));

  const Cells rows(weight.rows(), picture.rows), cols(weight.cols(), picture.cols);
  std::vector<int64_t> nonzeros(picture.rows * picture.cols);
  const auto add = [&](int64_t row, int64_t col) {
    ++nonzeros[rows.Of(row) * picture.cols + cols.Of(col)];
    if (row < picture.corner_rows && col < picture.corner_cols) SetBit(picture.corner[row], col);
  };
  std::visit([&](const auto& matrix) { ForEachNonzero(matrix, add); }, weight.matrix);

  for (int64_t i = 0; i < picture.rows; ++i) {
    for (int64_t j = 0; j < picture.cols; ++j) {
      picture.density += Level(nonzeros[i * picture.cols + j], rows.SizeOf(i) * cols.SizeOf(j));
    }
  }
  return picture;
}

}  // namespace swizzle::pack
