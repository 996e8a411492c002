// The dense panel convolutions' own layout of a weight: six rows interleaved, so that a column's weights of a tile are
// neighbours. Worked example, rows interleaved by 2 instead of 6: (a b), (c d), (e f) become
//     a c  b d | e e  f f
// A group that is not full repeats its last row. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_INTERLEAVED_DENSE_H_
#define SWIZZLE_KERNELS_CPU_CONV_INTERLEAVED_DENSE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"

namespace swizzle::cpu {

class InterleavedDense final : public PackedWeight {
 public:
  static constexpr int kRows = 6;

  // Columns that are summed at once, of `cols`. Gathered ones are written and read again soon: a block of them takes an
  // eighth of a second cache of 1 MiB. The input itself is there or not, whatever is done; a block takes half of it.
  static int64_t BlockColumns(bool gathered, int64_t cols) {
    const int64_t most = gathered ? 512 : 2048;
    const int64_t blocks = CeilDiv(cols, most);
    return CeilDiv(cols, blocks);
  }

  InterleavedDense(const DenseMatrix& matrix, std::span<const float> bias);

  size_t bytes() const override { return (weights_.size() + bias_.size()) * sizeof(float); }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t groups() const { return groups_; }
  // kRows weights of each column from `column` on.
  const float* weights(int64_t group, int64_t column) const {
    return weights_.data() + (group * cols_ + column) * kRows;
  }
  // Of the group, the repeated ones left out.
  int64_t GroupRows(int64_t group) const { return std::min<int64_t>(kRows, rows_ - group * kRows); }
  const float* bias() const { return bias_.data(); }  // of each row, zero if the layer has none

 private:
  int64_t rows_;
  int64_t cols_;
  int64_t groups_;
  std::vector<float> weights_;
  std::vector<float> bias_;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_INTERLEAVED_DENSE_H_
