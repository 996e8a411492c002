// Hybrid blocked ELL: blocks of 16 x 16, each packed as tightly as its nonzeros allow (Wu et al., "HB-ELL", section 3).
// A block without a nonzero is left out. One of which more than 3/4 are nonzeros is stored whole, row-major. Any other
// is an ELL matrix of its own: each of its rows has `width` entries, which is the longest row's count rounded up to 4,
// with their columns in the block beside them. Value type.
//
// Worked example, which is one block of width 4:
//                     0 5 0 7        block_row_pointers  0 1       block_cols  0       widths  4
//                     1 0 0 0        values   5 7 0 0   1 0 0 0   2 3 0 0   0 0 0 0
//                     0 2 3 0        columns  1 3 3 3   0 0 0 0   1 2 2 2   0 0 0 0    (packed: 31 33 00 00 21 22 ...)
//                     0 0 0 0
//
// What fills a row up is zero and repeats the row's last column, or has 0 where the row is empty. Columns have four
// bits, the first of two in a byte the lower. Blocks at the edges store the rows that there are, and dense ones the
// columns that there are. The paper's brow_valptr and bridx follow from the rest and are not stored; its bcidx is here
// in blocks.
//
// Invariant (Validate): ceil(rows / 16) + 1 block row pointers start at 0, never fall and end at the number of blocks;
// within a block row block columns rise strictly and are below ceil(cols / 16); a width is 4, 8, 12 or 16, or kWhole of
// a dense block; there are as many values and bytes of columns as the blocks say; in an ELL row columns lie inside the
// matrix and rise strictly up to the last, and what repeats it is zero. A stored zero is legal.
#ifndef SWIZZLE_KERNELS_FORMAT_HB_ELL_H_
#define SWIZZLE_KERNELS_FORMAT_HB_ELL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/integers.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

struct HbEllMatrix {
  static constexpr Format kFormat = Format::kHbEll;
  static constexpr int64_t kBlock = 16;
  static constexpr uint8_t kWhole = 0;

  // A block, and where what it stores begins.
  struct Block {
    int64_t first_row = 0, rows = 0;
    int64_t first_col = 0, cols = 0;
    int64_t width = kWhole;
    int64_t first_value = 0;   // in values
    int64_t first_column = 0;  // in columns, in bytes

    bool whole() const { return width == kWhole; }
    int64_t row_entries() const { return whole() ? cols : width; }
  };

  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<uint32_t> block_row_pointers;  // in blocks
  std::vector<uint32_t> block_cols;          // one a block
  std::vector<uint8_t> widths;               // one a block
  std::vector<uint8_t> columns;              // two a byte
  std::vector<float> values;

  int64_t block_rows() const { return CeilDiv(rows, kBlock); }
  // All blocks, in the order of their rows. REQUIRES: Validate() is OK
  std::vector<Block> Blocks() const;
  // Of an entry of a block's row, its column of the matrix; that of filling is the row's last.
  int64_t ColumnOf(const Block& block, int64_t row, int64_t entry) const;
  int64_t nnz() const;  // counts
  // INVALID_ARGUMENT naming the first block, row or entry that breaks the invariant.
  Status Validate() const;
  static HbEllMatrix FromDense(const DenseMatrix& dense);
  DenseMatrix ToDense() const;  // REQUIRES: Validate() is OK
  static bool Holds(const Structure& structure);
  // None where a matrix but the last ends inside a block.
  static std::optional<HbEllMatrix> StackRows(std::span<const HbEllMatrix* const> matrices);
  std::vector<uint32_t> ValueRows() const;
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Places("block row pointers", matrix.block_row_pointers);
    visitor.Places("block columns", matrix.block_cols, /*below=*/CeilDiv(matrix.cols, kBlock));
    visitor.Places("widths", matrix.widths);
    visitor.Places("columns", matrix.columns);
    visitor.Values("values", matrix.values);
  }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_HB_ELL_H_
