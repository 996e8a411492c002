#include "kernels/format/bitmap.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/format/structure.h"

namespace swizzle {
namespace {

constexpr int64_t kTileRows = BitmapMatrix::kTileRows, kTileCols = BitmapMatrix::kTileCols;
constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

// The lowest `count` bits, of 0 to 32.
uint32_t Lowest(int64_t count) { return static_cast<uint32_t>((uint64_t{1} << count) - 1); }

Status ValidateTiles(const BitmapMatrix& matrix) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.rows > kMaxUint32 || matrix.cols > kMaxUint32) {
    return InvalidArgument("bitmap matrix has impossible dimensions ", matrix.rows, " x ", matrix.cols);
  }
  const auto words = static_cast<int64_t>(matrix.tiles.size());
  if (words != matrix.row_tiles() * matrix.tile_words()) {
    return InvalidArgument("bitmap matrix of ", matrix.row_tiles(), " x ", matrix.col_tiles(), " tiles has ", words,
                           " words for them, not ", matrix.row_tiles() * matrix.tile_words());
  }
  int64_t held = 0;
  for (int64_t i = 0; i < words; ++i) {
    const int64_t left = matrix.col_tiles() - i % matrix.tile_words() * 32;
    if ((matrix.tiles[i] & ~Lowest(std::min<int64_t>(left, 32))) != 0) {
      return InvalidArgument("bitmap matrix, row ", i / matrix.tile_words(), " of tiles: a tile lies past the last, ",
                             matrix.col_tiles() - 1);
    }
    held += std::popcount(matrix.tiles[i]);
  }
  if (std::ssize(matrix.bits) != held * kTileCols) {
    return InvalidArgument("bitmap matrix has ", matrix.bits.size(), " words of bits; its ", held, " tiles have ",
                           held * kTileCols);
  }
  return absl::OkStatus();
}

// Adds the tile of a dense matrix, if it has a nonzero.
void AddTile(const DenseMatrix& dense, int64_t row_tile, int64_t col_tile, BitmapMatrix& matrix) {
  const int64_t first_row = row_tile * kTileRows, first_col = col_tile * kTileCols;
  const int64_t rows = std::min(kTileRows, dense.rows - first_row), cols = std::min(kTileCols, dense.cols - first_col);
  const float* const tile = dense.values.data() + first_row * dense.cols + first_col;
  std::array<uint32_t, kTileCols> words = {};
  bool holds = false;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      if (tile[row * dense.cols + col] == 0) continue;
      words[col] |= uint32_t{1} << row;
      holds = true;
    }
  }
  if (!holds) return;
  matrix.tiles[row_tile * matrix.tile_words() + col_tile / 32] |= uint32_t{1} << col_tile % 32;
  matrix.bits.insert(matrix.bits.end(), words.begin(), words.end());
  for (int64_t col = 0; col < cols; ++col) {
    for (uint32_t left = words[col]; left != 0; left &= left - 1) {
      matrix.values.push_back(tile[std::countr_zero(left) * dense.cols + col]);
    }
  }
}

}  // namespace

Status BitmapMatrix::Validate() const {
  SWIZZLE_RETURN_IF_ERROR(ValidateTiles(*this));
  int64_t word = 0, count = 0;
  for (int64_t row_tile = 0; row_tile < row_tiles(); ++row_tile) {
    const uint32_t inside = Lowest(std::min(kTileRows, rows - row_tile * kTileRows));
    for (int64_t col_tile = 0; col_tile < col_tiles(); ++col_tile) {
      if (!HoldsTile(row_tile, col_tile)) continue;
      uint32_t any = 0;
      for (int64_t i = 0; i < kTileCols; ++i, ++word) {
        const int64_t col = col_tile * kTileCols + i;
        if ((bits[word] & ~inside) != 0 || (col >= cols && bits[word] != 0)) {
          return InvalidArgument("bitmap matrix, column ", col, " of row ", row_tile, " of tiles: a bit lies past the ",
                                 rows, " x ", cols, " matrix");
        }
        any |= bits[word];
        count += std::popcount(bits[word]);
      }
      if (any == 0) {
        return InvalidArgument("bitmap matrix, tile ", row_tile, ", ", col_tile,
                               " holds nothing and should be left out");
      }
    }
  }
  if (std::ssize(values) != count) {
    return InvalidArgument("bitmap matrix has ", values.size(), " values of ", count, " bits");
  }
  return absl::OkStatus();
}

BitmapMatrix BitmapMatrix::FromDense(const DenseMatrix& dense) {
  SWIZZLE_CHECK(dense.rows <= kMaxUint32 && dense.cols <= kMaxUint32);
  BitmapMatrix matrix{dense.rows, dense.cols, {}, {}, {}};
  matrix.tiles.resize(matrix.row_tiles() * matrix.tile_words());
  for (int64_t row_tile = 0; row_tile < matrix.row_tiles(); ++row_tile) {
    for (int64_t col_tile = 0; col_tile < matrix.col_tiles(); ++col_tile) AddTile(dense, row_tile, col_tile, matrix);
  }
  return matrix;
}

DenseMatrix BitmapMatrix::ToDense() const {
  DenseMatrix dense{rows, cols, std::vector<float>(rows * cols)};
  ForEachWord([&](int64_t row_tile, int64_t col, uint32_t word, int64_t value) {
    for (; word != 0; word &= word - 1) {
      dense.values[(row_tile * kTileRows + std::countr_zero(word)) * cols + col] = values[value++];
    }
  });
  return dense;
}

// Any zeros fit; where a pattern explains them, its own format tells kernels more.
bool BitmapMatrix::Holds(const Structure& structure) {
  return structure.pattern == SparsityPattern::kUnstructured || structure.pattern == SparsityPattern::kRowsColumns;
}

std::optional<BitmapMatrix> BitmapMatrix::StackRows(std::span<const BitmapMatrix* const> matrices) {
  BitmapMatrix stacked{0, matrices[0]->cols, {}, {}, {}};
  for (const BitmapMatrix* part : matrices) {
    if (stacked.rows % kTileRows != 0) return std::nullopt;
    stacked.rows += part->rows;
    stacked.tiles.insert(stacked.tiles.end(), part->tiles.begin(), part->tiles.end());
    stacked.bits.insert(stacked.bits.end(), part->bits.begin(), part->bits.end());
    stacked.values.insert(stacked.values.end(), part->values.begin(), part->values.end());
  }
  return stacked;
}

std::vector<uint32_t> BitmapMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows;
  value_rows.reserve(values.size());
  ForEachWord([&](int64_t row_tile, int64_t, uint32_t word, int64_t) {
    for (; word != 0; word &= word - 1) {
      value_rows.push_back(static_cast<uint32_t>(row_tile * kTileRows + std::countr_zero(word)));
    }
  });
  return value_rows;
}

void BitmapMatrix::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  std::array<std::vector<uint32_t>, kTileRows> of_rows;
  const auto flush = [&](int64_t row_tile) {
    for (int64_t row = row_tile * kTileRows; row < std::min(rows, (row_tile + 1) * kTileRows); ++row) {
      visit(row, of_rows[row % kTileRows]);
      of_rows[row % kTileRows].clear();
    }
  };
  int64_t current = 0;
  ForEachWord([&](int64_t row_tile, int64_t col, uint32_t word, int64_t) {
    for (; current < row_tile; ++current) flush(current);
    for (; word != 0; word &= word - 1) of_rows[std::countr_zero(word)].push_back(static_cast<uint32_t>(col));
  });
  for (; current < row_tiles(); ++current) flush(current);
}

}  // namespace swizzle
