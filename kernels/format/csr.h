// Compressed sparse row: the format of unstructured pruning. Value type.
//
// Worked example:      1 0 0 2        row_offsets    0 2 2 3 5
//                      0 0 0 0        col_indices    0 3 1 0 2
//                      0 3 0 0        values         1 2 3 4 5
//                      4 0 5 0
//
// Invariant (Validate): row_offsets has rows+1 entries, starts at 0, never falls and ends at nnz; within a row column
// indices rise strictly and are below cols; values has nnz entries. A stored zero is legal.
#ifndef SWIZZLE_KERNELS_FORMAT_CSR_H_
#define SWIZZLE_KERNELS_FORMAT_CSR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

struct CsrMatrix {
  static constexpr Format kFormat = Format::kCsr;

  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<uint32_t> row_offsets;
  std::vector<uint32_t> col_indices;
  std::vector<float> values;

  int64_t nnz() const { return static_cast<int64_t>(values.size()); }
  // INVALID_ARGUMENT naming the first row and entry that breaks the invariant.
  Status Validate() const;
  static CsrMatrix FromDense(const DenseMatrix& dense);  // drops zeros (and negative zeros)
  DenseMatrix ToDense() const;                           // REQUIRES: Validate() is OK
  static bool Holds(const Structure& structure);
  static std::optional<CsrMatrix> StackRows(std::span<const CsrMatrix* const> matrices);
  std::vector<uint32_t> ValueRows() const;
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Places("row offsets", matrix.row_offsets);
    visitor.Places("column indices", matrix.col_indices, /*below=*/matrix.cols);
    visitor.Values("values", matrix.values);
  }
};

// Row order by falling length, stable: Sputnik's row swizzle (Gale et al., SC20, section 5.2).
std::vector<uint32_t> RowSwizzle(const CsrMatrix& matrix);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_CSR_H_
