// FP32 operands of attention as FP16 parts, for products on tensor cores (tensor_core/operand.cuh): of each head, all
// numbers are multiplied by the power of two that brings the largest to 2^14, and each is then the sum of two FP16
// numbers.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_SPLIT_OPERANDS_H_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_SPLIT_OPERANDS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/attention/attention_pattern.h"

namespace swizzle::cuda {

// FP32; `values` may be null. At most 341 heads. Head dim: a power of two from 8.
struct Operands {
  HeadMatrices queries, keys, values;
  int64_t tokens;
  int heads;
  int head_dim;
};

// In the workspace. Keys and values have rows of upper parts and then rests, in FP16; queries are split where they are
// used.
struct SplitOperands {
  HeadMatrices keys, values;
  const uint32_t* largest;  // [3][heads]: magnitudes of queries, keys and values, as bits
};

size_t SplitBytes(const Operands& operands);
// Queues work. REQUIRES: a workspace of SplitBytes, aligned to 16.
SplitOperands Split(const Operands& operands, std::span<std::byte> workspace, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_SPLIT_OPERANDS_H_
