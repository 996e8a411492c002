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

int64_t DenseMatrix::CountNonzeros() const {
  return std::count_if(values.begin(), values.end(), [](float value) { return value != 0.0f; });
}

}  // namespace swizzle
