// Softmax of the rows of a dense FP16 matrix, in place: what dense attention in parts has between its products.
#ifndef SWIZZLE_TESTS_BENCH_CUDA_DENSE_SOFTMAX_H_
#define SWIZZLE_TESTS_BENCH_CUDA_DENSE_SOFTMAX_H_

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace swizzle::bench {

// cols: a multiple of 2048, at most 8192.
void QueueDenseSoftmax(__half* values, int64_t rows, int cols, float scale, cudaStream_t queue);

}  // namespace swizzle::bench

#endif  // SWIZZLE_TESTS_BENCH_CUDA_DENSE_SOFTMAX_H_
