// A product of gathered rows by a producer and a consumer: what kernels/cuda/tensor_core/pipeline.cuh is for.
#ifndef SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PIPELINE_PRODUCT_H_
#define SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PIPELINE_PRODUCT_H_

#include <cstdint>

namespace swizzle::cuda {

inline constexpr int kProductRows = 64, kProductColumns = 64, kStageDepth = 64;

// sums[64][64] = left[64][depth] times rows `taken` of x, [rows][64]; FP16, sums in FP32. `left` comes as blocks of 64
// by 64, one a stage, its 16-byte piece p of row r at p ^ (r % 8). In device memory.
void QueuePipelineProduct(const uint16_t* left, const uint16_t* x, const uint32_t* taken, int stages, float* sums);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_TESTS_KERNELS_CUDA_TENSOR_CORE_PIPELINE_PRODUCT_H_
