#include "kernels/format/dense.h"

#include <algorithm>

namespace swizzle {

Status DenseMatrix::Validate() const {
  int64_t elements = 0;
  if (rows < 0 || cols < 0 || __builtin_mul_overflow(rows, cols, &elements)) {
    return InvalidArgument("dense matrix has impossible dimensions ", rows, " x ", cols);
  }
  if (static_cast<int64_t>(values.size()) != elements) {
    return InvalidArgument("dense matrix of ", rows, " x ", cols, " has ", values.size(), " values, not ", elements);
  }
  return absl::OkStatus();
}

int64_t DenseMatrix::nnz() const {
  // In stretches whose sum fits a lane of vectors, which the compiler then counts in.
  constexpr size_t kStretch = 4096;
  int64_t count = 0;
  size_t i = 0;
  for (; i + kStretch <= values.size(); i += kStretch) {
    int32_t of_stretch = 0;
    for (size_t j = 0; j < kStretch; ++j) of_stretch += values[i + j] != 0.0f ? 1 : 0;
    count += of_stretch;
  }
  return count + std::count_if(values.begin() + static_cast<ptrdiff_t>(i), values.end(),
                               [](float value) { return value != 0.0f; });
}

std::optional<DenseMatrix> DenseMatrix::StackRows(std::span<const DenseMatrix* const> matrices) {
  DenseMatrix stacked{.rows = 0, .cols = matrices.front()->cols, .values = {}};
  for (const DenseMatrix* matrix : matrices) {
    stacked.rows += matrix->rows;
    stacked.values.insert(stacked.values.end(), matrix->values.begin(), matrix->values.end());
  }
  return stacked;
}

void DenseMatrix::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  std::vector<uint32_t> nonzeros;
  const float* value = values.data();
  for (int64_t row = 0; row < rows; ++row) {
    nonzeros.clear();
    for (int64_t col = 0; col < cols; ++col) {
      if (*value++ != 0.0f) nonzeros.push_back(static_cast<uint32_t>(col));
    }
    visit(row, nonzeros);
  }
}

std::vector<uint32_t> DenseMatrix::ValueRows() const {
  std::vector<uint32_t> value_rows(values.size());
  for (size_t i = 0; i < values.size(); ++i) value_rows[i] = static_cast<uint32_t>(static_cast<int64_t>(i) / cols);
  return value_rows;
}

}  // namespace swizzle
