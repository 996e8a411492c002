// Strided row-major BCRS: vectors of neighbouring rows, for rows of quantised products (Li et al., "Magicube", SC 2022,
// section 4.1). Every `vector_rows` rows are a block row, which keeps whole vectors: its entries in one column. Vectors
// stand in strides, as many as one multiplication adds up; the values of a stride are row-major, so that a row's come
// one after another. Value type.
//
// Worked example, vectors of 2 rows, strides of 2:
//                     1 0 2 3        row_pointers   0 3  4 5
//                     4 0 0 5        col_indices    0 2  3 *  1 *              *: cols, past the last column
//                     0 6 0 0        values         1 2  4 0   3 0  5 0   6 0  7 0
//                     0 7 0 0
//
// A block row has two pointers, of vectors: its first, a multiple of the stride, and one past its last; the next begins
// at the next multiple. The paper pads indices with -1; here it is cols, so that they stay as narrow as in other
// formats.
//
// Invariant (Validate): vector_rows is 2, 4 or 8; 1 <= stride <= kMostStride; there are ceil(rows / vector_rows) pairs
// of pointers as above; within a block row column indices rise strictly and are below cols, and past its end they are
// cols; values has stride * vector_rows entries a stride, those of padding and past the last row being zero. A stored
// zero is legal.
#ifndef SWIZZLE_KERNELS_FORMAT_SR_BCRS_H_
#define SWIZZLE_KERNELS_FORMAT_SR_BCRS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/integers.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

struct SrBcrsMatrix {
  static constexpr Format kFormat = Format::kSrBcrs;
  static constexpr int64_t kMostStride = 64;
  static constexpr int64_t kDotStride = 4;  // of instructions that add up four products of bytes

  int64_t rows = 0;
  int64_t cols = 0;
  int64_t vector_rows = 2;
  int64_t stride = kDotStride;
  std::vector<uint32_t> row_pointers;
  std::vector<uint32_t> col_indices;
  std::vector<float> values;

  int64_t block_rows() const { return CeilDiv(rows, vector_rows); }
  // Of a row's entry in a vector.
  int64_t ValueAt(int64_t vector, int64_t row_of_vector) const {
    return (vector / stride * vector_rows + row_of_vector) * stride + vector % stride;
  }
  int64_t nnz() const;  // counts
  // INVALID_ARGUMENT naming the first block row or vector that breaks the invariant.
  Status Validate() const;
  // Strides of kDotStride and, of the lengths of vectors of which at least 3/4 are nonzeros, that of the fewest bytes;
  // INVALID_ARGUMENT where there is none.
  static StatusOr<SrBcrsMatrix> FromDense(const DenseMatrix& dense);
  // Keeps every vector with a nonzero. REQUIRES: vector_rows and stride are as the invariant says.
  static SrBcrsMatrix FromDense(const DenseMatrix& dense, int64_t vector_rows, int64_t stride = kDotStride);
  DenseMatrix ToDense() const;  // REQUIRES: Validate() is OK
  static bool Holds(const Structure& structure);
  std::vector<uint32_t> ValueRows() const;
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Scalar("vector rows", matrix.vector_rows);
    visitor.Scalar("stride", matrix.stride);
    visitor.Places("row pointers", matrix.row_pointers);
    visitor.Places("column indices", matrix.col_indices, /*below=*/matrix.cols + 1);
    visitor.Values("values", matrix.values);
  }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_SR_BCRS_H_
