// Bitmaps on two levels over packed values (Wang et al., "Dual-side Sparse Tensor Core", ISCA 2021, section 4): the
// form in which outer products need no search for matching indices, since two bitmaps say what meets. The matrix is cut
// into tiles of 32 rows by 16 columns. A bit a tile says whether it holds anything. Such a tile has a word a column, a
// bit of it a row, and its nonzeros stand packed, column after column. Value type.
//
// Worked example, which is one tile (columns past the fourth are 0):
//                     0 5 0 7        tiles   1
//                     1 0 0 0        bits    0010 0101 0100 0001 (binary, the lowest bit is row 0), then twelve of 0
//                     0 2 3 0        values  1   5 2   3   7
//                     0 0 0 0
//
// Where a tile's bits and values begin follows from the bits before it: nothing but bits says where values are.
//
// Invariant (Validate): there are tile_words() words of tiles for every 32 rows, tile column c being bit c % 32 of word
// c / 32, and none past the last tile column is set; bits has kTileCols words for each tile that is set, at least one
// of which is not 0, and no bit lies past the matrix's edges; there are as many values as bits. A stored zero is legal.
#ifndef SWIZZLE_KERNELS_FORMAT_BITMAP_H_
#define SWIZZLE_KERNELS_FORMAT_BITMAP_H_

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/integers.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

struct BitmapMatrix {
  static constexpr Format kFormat = Format::kBitmap;
  static constexpr int64_t kTileRows = 32;
  static constexpr int64_t kTileCols = 16;

  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<uint32_t> tiles;  // which hold anything
  std::vector<uint32_t> bits;   // of those, kTileCols each
  std::vector<float> values;

  int64_t row_tiles() const { return CeilDiv(rows, kTileRows); }
  int64_t col_tiles() const { return CeilDiv(cols, kTileCols); }
  int64_t tile_words() const { return CeilDiv(col_tiles(), int64_t{32}); }  // of a row of tiles
  bool HoldsTile(int64_t row_tile, int64_t col_tile) const {
    return (tiles[row_tile * tile_words() + col_tile / 32] >> col_tile % 32 & 1) != 0;
  }
  int64_t nnz() const { return static_cast<int64_t>(values.size()); }

  // Calls visit(row tile, column, its word, the first of its values) for every column of every tile that holds
  // anything, in the order in which values are stored. REQUIRES: Validate() is OK
  template <typename Visit>
  void ForEachWord(const Visit& visit) const {
    int64_t word = 0, value = 0;
    for (int64_t row_tile = 0; row_tile < row_tiles(); ++row_tile) {
      for (int64_t col_tile = 0; col_tile < col_tiles(); ++col_tile) {
        if (!HoldsTile(row_tile, col_tile)) continue;
        for (int64_t col = col_tile * kTileCols; col < (col_tile + 1) * kTileCols; ++col, ++word) {
          visit(row_tile, col, bits[word], value);
          value += std::popcount(bits[word]);
        }
      }
    }
  }

  // INVALID_ARGUMENT naming the first tile or column that breaks the invariant.
  Status Validate() const;
  static BitmapMatrix FromDense(const DenseMatrix& dense);
  DenseMatrix ToDense() const;  // REQUIRES: Validate() is OK
  static bool Holds(const Structure& structure);
  // None where a matrix but the last ends inside a tile.
  static std::optional<BitmapMatrix> StackRows(std::span<const BitmapMatrix* const> matrices);
  std::vector<uint32_t> ValueRows() const;
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Places("tiles", matrix.tiles);
    visitor.Places("bits", matrix.bits);
    visitor.Values("values", matrix.values);
  }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_BITMAP_H_
