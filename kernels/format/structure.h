// Which pattern the zeros of a weight have: what pruned it, and which format would store it.
//
// A weight is [rows, cols] = [output channels, input channels * taps], the taps of a window being the faster (OIHW).
// Blocks lie along input channels at one tap: a 1x4 block is four neighbouring input channels of one output channel and
// tap. Entries that a CSR matrix stores count as nonzeros whatever their value.
//
// A pattern says which entries have to be stored, its cells: of blocks, those that hold a nonzero, with all that lies
// in them. It fits where
//   - its cells are full: at least 3/4 of them are nonzeros (explicit zeros inside blocks are legal, strays cost a
//   block);
//   - and it explains the zeros: at least 3/4 of all zeros lie outside its cells.
// Drawn zeros pass one of the two at most: blocks of n entries at density d leave out (1-d)^(n-1) of the zeros, which
// is 3/4 at n = 4 only where d < .1, and there blocks are hardly more than 1/4 full.
//
//   kDense          less than one entry in 20 is zero
//   kRowsColumns    the same, once rows and columns that are wholly zero are left out
//   kBlocks         block_rows x block_cols, aligned: 1x4, 1x8, 2x1, 4x1, 8x1, 16x16, 32x32; cut off at the edges
//   kNOfM           at most n of any m neighbouring input channels (no exception): 1:4, 2:4, 1:8, 2:8, 4:8. All groups
//   of
//                   a row that is not zero are cells; claimed of 32 groups at least, since few are so by chance
//   kRowVectors     rows fall into groups of block_rows (4, 8 or 16) that are nonzero in the same columns, once they
//   are
//                   permuted. Rows count as equal only if all their places are; an incomplete group is filled up
//   kUnstructured   everything else
//
// kDense and kRowsColumns win where they hold; then the most specific pattern that fits: the first in the order 32x32,
// 16x16, 8x1, 1x8, vectors of 16 and 8 rows, 4x1, 1x4, vectors of 4 rows, 2x1, n:m. It is passed over where another
// takes more than a tenth less bytes: a few strays are no reason to call 16x16 blocks 8x1, many are.
//
// Pure; thread-safe.
#ifndef SWIZZLE_KERNELS_FORMAT_STRUCTURE_H_
#define SWIZZLE_KERNELS_FORMAT_STRUCTURE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/format/weight_matrix.h"

namespace swizzle {

enum class SparsityPattern : uint8_t { kDense, kRowsColumns, kBlocks, kNOfM, kRowVectors, kUnstructured };
std::string_view SparsityPatternName(SparsityPattern pattern);  // "rows_columns"

struct Structure {
  SparsityPattern pattern = SparsityPattern::kDense;
  int64_t block_rows = 1;  // kBlocks, kRowVectors
  int64_t block_cols = 1;  // kBlocks
  int64_t n = 0, m = 0;    // kNOfM
  double fill = 1.0;       // share of nonzeros among the pattern's cells; kUnstructured: 1
  int64_t bytes = 0;       // of the weight stored so: FP32 values, 2- or 4-byte indices
  int64_t zero_rows = 0;   // wholly zero, whatever the pattern
  int64_t zero_cols = 0;
  int64_t zero_channels = 0;  // input channels whose columns are all zero
  // kUnstructured: share of the nonzeros in blocks of 16 rows by 16 neighbouring columns that are more than 3/4 full.
  // Where it is large, the rest are strays beside blocks. 0 where more than 1/4 of the zeros lie in such blocks.
  double in_full_blocks = 0.0;

  // "2:4", "1x4 blocks", "4-row vectors", "zero rows": at most 14 letters.
  std::string Name() const;
};

// Which formats can hold what it finds, FormatsThatHold says. O(rows * cols) for a dense matrix to find its nonzeros,
// then O(nnz + cols) a pattern and O(rows log rows).
// REQUIRES: the matrix is valid, its dimensions and nonzeros are below 2^32, taps >= 1 divides cols.
Structure DetectStructure(const WeightMatrix& matrix, int64_t taps = 1);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_STRUCTURE_H_
