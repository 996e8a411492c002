#include "kernels/cpu/conv/interleaved_dense.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {

InterleavedDense::InterleavedDense(const DenseMatrix& matrix, std::span<const float> bias)
    : rows_(matrix.rows),
      cols_(matrix.cols),
      groups_(CeilDiv(matrix.rows, kRows)),
      weights_(groups_ * kRows * matrix.cols),
      bias_(matrix.rows) {
  std::copy(bias.begin(), bias.end(), bias_.begin());
  for (int64_t group = 0; group < groups_; ++group) {
    float* to = weights_.data() + group * cols_ * kRows;
    for (int r = 0; r < kRows; ++r) {
      const int64_t row = std::min(group * kRows + r, rows_ - 1);
      const float* from = matrix.values.data() + row * cols_;
      for (int64_t k = 0; k < cols_; ++k) to[k * kRows + r] = from[k];
    }
  }
}

}  // namespace swizzle::cpu
