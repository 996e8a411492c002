#include "kernels/cpu/conv/block_rows.h"

#include "kernels/base/integers.h"
#include "kernels/cpu/layout/slab.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockRows(const Weight& weight, const Problem&) {
  const DenseMatrix matrix = weight.ToDense();
  auto packed = std::make_unique<BlockWeight>();
  packed->taps = matrix.cols;
  packed->bias = weight.bias;
  packed->bias.resize(static_cast<size_t>(RoundUp(matrix.rows, kBlockChannels)));
  packed->values.resize(packed->bias.size() * static_cast<size_t>(matrix.cols));
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t col = 0; col < matrix.cols; ++col) {
      const int64_t at = (row / kBlockChannels * matrix.cols + col) * kBlockChannels + row % kBlockChannels;
      packed->values[static_cast<size_t>(at)] = matrix.values[static_cast<size_t>(row * matrix.cols + col)];
    }
  }
  return packed;
}

}  // namespace swizzle::cpu
