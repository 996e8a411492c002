#include "kernels/format/csr.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/format/structure.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

Status ValidateCounts(const CsrMatrix& matrix) {
  if (matrix.rows < 0 || matrix.cols < 0 || matrix.rows > kMaxUint32 || matrix.cols > kMaxUint32) {
    return InvalidArgument("CSR matrix has impossible dimensions ", matrix.rows, " x ", matrix.cols);
  }
  if (static_cast<int64_t>(matrix.row_offsets.size()) != matrix.rows + 1) {
    return InvalidArgument("CSR matrix of ", matrix.rows, " rows has ", matrix.row_offsets.size(), " row offsets, not ",
                           matrix.rows + 1);
  }
  if (matrix.values.size() != matrix.col_indices.size()) {
    return InvalidArgument("CSR matrix has ", matrix.values.size(), " values and ", matrix.col_indices.size(),
                           " column indices; the counts must be equal");
  }
  if (matrix.row_offsets.front() != 0 || static_cast<int64_t>(matrix.row_offsets.back()) != matrix.nnz()) {
    return InvalidArgument("CSR row offsets run from ", matrix.row_offsets.front(), " to ", matrix.row_offsets.back(),
                           "; they must run from 0 to ", matrix.nnz());
  }
  return absl::OkStatus();
}

// REQUIRES: the row's offsets lie within col_indices.
Status ValidateRow(const CsrMatrix& matrix, int64_t row) {
  int64_t previous = -1;
  for (uint32_t i = matrix.row_offsets[row]; i < matrix.row_offsets[row + 1]; ++i) {
    const int64_t col = matrix.col_indices[i];
    if (col >= matrix.cols) {
      return InvalidArgument("CSR row ", row, ", entry ", i, ": column ", col, " is not below ", matrix.cols);
    }
    if (col <= previous) {
      return InvalidArgument("CSR row ", row, ", entry ", i, ": column ", col, " does not come after column ",
                             previous);
    }
    previous = col;
  }
  return absl::OkStatus();
}

}  // namespace

Status CsrMatrix::Validate() const {
  SWIZZLE_RETURN_IF_ERROR(ValidateCounts(*this));
  for (int64_t row = 0; row < rows; ++row) {
    if (row_offsets[row] > row_offsets[row + 1]) {
      return InvalidArgument("CSR row ", row, ": its offset ", row_offsets[row], " is beyond the next row's, ",
                             row_offsets[row + 1]);
    }
  }
  for (int64_t row = 0; row < rows; ++row) SWIZZLE_RETURN_IF_ERROR(ValidateRow(*this, row));
  return absl::OkStatus();
}

CsrMatrix CsrMatrix::FromDense(const DenseMatrix& dense) {
  CsrMatrix csr{.rows = dense.rows, .cols = dense.cols, .row_offsets = {0}, .col_indices = {}, .values = {}};
  const int64_t nnz = dense.nnz();
  SWIZZLE_CHECK(nnz <= kMaxUint32 && dense.cols <= kMaxUint32);
  csr.row_offsets.reserve(dense.rows + 1);
  csr.col_indices.reserve(nnz);
  csr.values.reserve(nnz);
  for (int64_t row = 0; row < dense.rows; ++row) {
    for (int64_t col = 0; col < dense.cols; ++col) {
      const float value = dense.values[row * dense.cols + col];
      if (value == 0.0f) continue;
      csr.col_indices.push_back(static_cast<uint32_t>(col));
      csr.values.push_back(value);
    }
    csr.row_offsets.push_back(static_cast<uint32_t>(csr.values.size()));
  }
  return csr;
}

DenseMatrix CsrMatrix::ToDense() const {
  DenseMatrix dense{.rows = rows, .cols = cols, .values = std::vector<float>(rows * cols)};
  for (int64_t row = 0; row < rows; ++row) {
    for (uint32_t i = row_offsets[row]; i < row_offsets[row + 1]; ++i) {
      dense.values[row * cols + col_indices[i]] = values[i];
    }
  }
  return dense;
}

bool CsrMatrix::Holds(const Structure& structure) { return structure.pattern != SparsityPattern::kDense; }

std::optional<CsrMatrix> CsrMatrix::StackRows(std::span<const CsrMatrix* const> matrices) {
  int64_t entries = 0;
  for (const CsrMatrix* matrix : matrices) entries += matrix->nnz();
  if (entries > kMaxUint32) return std::nullopt;
  CsrMatrix stacked{.rows = 0, .cols = matrices.front()->cols, .row_offsets = {0}, .col_indices = {}, .values = {}};
  for (const CsrMatrix* matrix : matrices) {
    const uint32_t before = stacked.row_offsets.back();
    for (int64_t row = 1; row <= matrix->rows; ++row) stacked.row_offsets.push_back(before + matrix->row_offsets[row]);
    stacked.rows += matrix->rows;
    stacked.col_indices.insert(stacked.col_indices.end(), matrix->col_indices.begin(), matrix->col_indices.end());
    stacked.values.insert(stacked.values.end(), matrix->values.begin(), matrix->values.end());
  }
  return stacked;
}

void CsrMatrix::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  for (int64_t row = 0; row < rows; ++row) {
    visit(row, std::span(col_indices).subspan(row_offsets[row], row_offsets[row + 1] - row_offsets[row]));
  }
}

std::vector<uint32_t> CsrMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows(values.size());
  for (int64_t row = 0; row < rows; ++row) {
    std::fill(value_rows.begin() + row_offsets[row], value_rows.begin() + row_offsets[row + 1],
              static_cast<uint32_t>(row));
  }
  return value_rows;
}

std::vector<uint32_t> RowSwizzle(const CsrMatrix& matrix) {
  std::vector<uint32_t> order(matrix.rows);
  std::iota(order.begin(), order.end(), 0);
  const auto length = [&](uint32_t row) { return matrix.row_offsets[row + 1] - matrix.row_offsets[row]; };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return length(a) > length(b); });
  return order;
}

}  // namespace swizzle
