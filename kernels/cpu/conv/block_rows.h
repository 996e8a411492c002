// Dense weights for kernels whose output channels stand in vectors (block_rows-inl.h): for each block of 16 of them and
// each input that a window reads, a value a channel. Channels beyond the last have zeros.
#ifndef SWIZZLE_KERNELS_CPU_CONV_BLOCK_ROWS_H_
#define SWIZZLE_KERNELS_CPU_CONV_BLOCK_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// Immutable.
struct BlockWeight final : PackedWeight {
  std::vector<float> values, bias;
  int64_t taps = 0;  // inputs that a window reads

  size_t bytes() const override { return (values.size() + bias.size()) * sizeof(float); }
};

StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockRows(const Weight& weight, const Problem& problem);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_BLOCK_ROWS_H_
