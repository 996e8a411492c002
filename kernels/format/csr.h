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
#include <vector>

#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

struct CsrMatrix {
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
  // Bytes as a packed file stores it: 4 a value, 2 an index where cols <= 65536 (else 4), 4 a row offset.
  size_t bytes() const;
};

// Row order by falling length, stable: Sputnik's row swizzle (Gale et al., SC20, section 5.2).
std::vector<uint32_t> RowSwizzle(const CsrMatrix& matrix);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_CSR_H_
