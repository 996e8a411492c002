#include "kernels/cuda/runtime/elements.cuh"
#include "tests/bench/cuda/dense_softmax.h"

namespace swizzle::bench {
namespace {

constexpr int kThreads = 256, kAtOnce = 8, kMost = 8192 / kThreads / kAtOnce;

// Of all warps.
template <typename OfLanes, typename Join>
__device__ float OfBlock(float value, const OfLanes& of_lanes, const Join& join) {
  __shared__ float parts[kThreads / 32];
  value = of_lanes(value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < kThreads / 32; ++i) value = join(value, parts[i]);
  return value;
}

// A row each block, which holds it in registers.
__global__ void __launch_bounds__(kThreads) SoftmaxRow(__half* values, int cols, float scale) {
  __half* const row = values + int64_t{blockIdx.x} * cols;
  float held[kMost][kAtOnce];
  float most = -INFINITY, sum = 0;
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = (i * kThreads + static_cast<int>(threadIdx.x)) * kAtOnce;
    if (at >= cols) continue;
    cuda::LoadPack(row + at, held[i]);
    for (float& value : held[i]) most = fmaxf(most, value *= scale);
  }
  most = OfBlock(
      most, [](float x) { return cuda::MaxOfLanes(x); }, [](float a, float b) { return fmaxf(a, b); });
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if ((i * kThreads + static_cast<int>(threadIdx.x)) * kAtOnce >= cols) continue;
    for (float& value : held[i]) sum += value = __expf(value - most);
  }
  sum = OfBlock(
      sum, [](float x) { return cuda::SumOfLanes(x); }, [](float a, float b) { return a + b; });
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = (i * kThreads + static_cast<int>(threadIdx.x)) * kAtOnce;
    if (at >= cols) continue;
    for (float& value : held[i]) value /= sum;
    cuda::StorePack(held[i], row + at);
  }
}

}  // namespace

void QueueDenseSoftmax(__half* values, int64_t rows, int cols, float scale, cudaStream_t queue) {
  SoftmaxRow<<<static_cast<unsigned>(rows), kThreads, 0, queue>>>(values, cols, scale);
}

}  // namespace swizzle::bench
