#include "model_loader/pack/weight_picture.h"

#include <algorithm>
#include <span>

#include "kernels/base/integers.h"

namespace swizzle::pack {
namespace {

constexpr int64_t kMostCells = 96;
constexpr int64_t kCorner = 64;
constexpr char kLevels[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int64_t kFull = 63;

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
  weight.matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> row_nonzeros) {
    for (int64_t col : row_nonzeros) {
      ++nonzeros[rows.Of(row) * picture.cols + cols.Of(col)];
      if (row < picture.corner_rows && col < picture.corner_cols) SetBit(picture.corner[row], col);
    }
  });

  for (int64_t i = 0; i < picture.rows; ++i) {
    for (int64_t j = 0; j < picture.cols; ++j) {
      picture.density += Level(nonzeros[i * picture.cols + j], rows.SizeOf(i) * cols.SizeOf(j));
    }
  }
  return picture;
}

}  // namespace swizzle::pack
