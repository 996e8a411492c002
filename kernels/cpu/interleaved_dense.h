// The dense panel convolutions' own layout of a weight: four rows interleaved, so that one load gives a column's
// weights of a tile. Worked example: rows (a b), (c d), (e f), (g h), (i j) become
//     a c e g  b d f h | i i i i  j j j j
// A group that is not full repeats the last row, which is computed and stored again. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INTERLEAVED_DENSE_H_
#define SWIZZLE_KERNELS_CPU_INTERLEAVED_DENSE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_table.h"

namespace swizzle::cpu {

class InterleavedDense final : public PackedWeight {
 public:
  static constexpr int kRows = 4;

  InterleavedDense(const DenseMatrix& matrix, std::span<const float> bias);

  size_t bytes() const override { return (weights_.size() + bias_.size()) * sizeof(float); }
  int64_t cols() const { return cols_; }
  int64_t groups() const { return groups_; }
  // kRows weights of each column.
  const float* weights(int64_t group) const { return weights_.data() + group * cols_ * kRows; }
  uint32_t row(int64_t group, int r) const {
    const int64_t row = group * kRows + r;
    return static_cast<uint32_t>(row < rows_ ? row : rows_ - 1);
  }
  const float* bias() const { return bias_.data(); }  // of each row, zero if the layer has none

 private:
  int64_t rows_;
  int64_t cols_;
  int64_t groups_;
  std::vector<float> weights_;
  std::vector<float> bias_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INTERLEAVED_DENSE_H_
