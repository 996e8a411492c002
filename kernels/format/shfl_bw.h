// Vectors of rows, after a shuffle of rows: the format of vector-wise and Shfl-BW pruning (Huang et al., "Shfl-BW",
// DAC 2022, section 3). Rows stand in an order of the matrix's own, and every `vector_rows` of them in that order are a
// group, which keeps the same columns: a vector is a group's entries in one column. Without a shuffle the order is
// 0, 1, 2, ... and the format vector-wise. Value type.
//
// Worked example, vectors of 2 rows:   1 0 2 0        row_order      0 3 1 2
//                                      0 3 0 4        group_offsets  0 2 4
//                                      0 5 0 6        col_indices    0 2 1 3
//                                      7 0 8 0        values         1 7  2 8  3 5  4 6
//
// Invariant (Validate): row_order names every row once; there are ceil(rows / vector_rows) groups, whose offsets start
// at 0, never fall and end at the number of vectors; within a group column indices rise strictly and are below cols;
// values has vector_rows entries a vector, those past the last row being zero. A stored zero is legal.
#ifndef SWIZZLE_KERNELS_FORMAT_SHFL_BW_H_
#define SWIZZLE_KERNELS_FORMAT_SHFL_BW_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"
#include "kernels/format/row_patterns.h"  // RowsInOrder

namespace swizzle {

class WeightMatrix;

// How rows are grouped.
struct RowGrouping {
  int64_t vector_rows = 0;
  std::vector<uint32_t> row_order;  // of each place, the row that stands there
  double fill = 1;                  // share of nonzeros among the entries stored
};

struct ShflBwMatrix {
  static constexpr Format kFormat = Format::kShflBw;
  static constexpr int64_t kMostVectorRows = 1024;

  int64_t rows = 0;
  int64_t cols = 0;
  int64_t vector_rows = 1;
  std::vector<uint32_t> row_order;
  std::vector<uint32_t> group_offsets;  // in vectors
  std::vector<uint32_t> col_indices;    // one a vector
  std::vector<float> values;

  int64_t groups() const { return static_cast<int64_t>(group_offsets.size()) - 1; }
  int64_t vectors() const { return static_cast<int64_t>(col_indices.size()); }
  int64_t nnz() const;  // counts
  // INVALID_ARGUMENT naming the first group, row or entry that breaks the invariant.
  Status Validate() const;
  // As FindRowGrouping groups them; INVALID_ARGUMENT where the rows share too few columns.
  static StatusOr<ShflBwMatrix> FromDense(const DenseMatrix& dense);
  // A group keeps every column in which one of its rows is not zero. REQUIRES: 1 <= vector_rows <= kMostVectorRows,
  // row_order names every row once.
  static ShflBwMatrix FromDense(const DenseMatrix& dense, int64_t vector_rows, std::vector<uint32_t> row_order);
  DenseMatrix ToDense() const;  // REQUIRES: Validate() is OK
  static bool Holds(const Structure& structure);
  // None where vectors differ in length, or a matrix but the last ends inside a group.
  static std::optional<ShflBwMatrix> StackRows(std::span<const ShflBwMatrix* const> matrices);
  std::vector<uint32_t> ValueRows() const;
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Scalar("vector rows", matrix.vector_rows);
    visitor.Places("row order", matrix.row_order, /*below=*/matrix.rows);
    visitor.Places("group offsets", matrix.group_offsets);
    visitor.Places("column indices", matrix.col_indices, /*below=*/matrix.cols);
    visitor.Values("values", matrix.values);
  }
};

// Rows of a matrix in groups of 128, 64, 32 or 16, so that at least 3/4 of what groups store is not zero: as they
// stand, or those together that are nonzero in the same columns, or in nearly the same ones where that stores markedly
// less, as of vectors of which some entries are zero, too. Of lengths that store about as much, the longest. None where
// there is no such grouping, as of drawn zeros. O(nnz + rows log rows), and O(rows^2 * cols / 1024) for rows that are
// alike without being equal; O(nnz) where the same patterns were among the last asked about. Thread-safe.
std::optional<RowGrouping> FindRowGrouping(const WeightMatrix& matrix);

// The matrix in these groups, or as it is where it is in some; INVALID_ARGUMENT where there are none. A zero that the
// matrix stores counts as nonzero, as in FindRowGrouping.
StatusOr<std::shared_ptr<const ShflBwMatrix>> GroupRows(const WeightMatrix& matrix);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_SHFL_BW_H_
