// Reductions over the channels of positions, for softmax and layer normalisation.
//
// kRows: a block takes kWidth neighbouring positions; its threads are kWidth lanes wide, so that a row is read in runs
// of kWidth elements, and share the channels. kNhwc: a warp takes a position, its lanes share the channels.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_COLUMNS_CUH_
#define SWIZZLE_KERNELS_CUDA_TOKENS_COLUMNS_CUH_

#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda {

inline constexpr int kColumnThreads = 256;

struct JoinSum {
  static constexpr float kStart = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct JoinMax {
  static constexpr float kStart = -INFINITY;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// A block's kWidth positions of kRows. All threads of the block call every member.
template <int kWidth>
class RowColumns {
 public:
  static constexpr int kParts = kColumnThreads / kWidth;  // threads of a position
  static_assert(kWidth <= 32 && 32 % kWidth == 0);

  __device__ RowColumns() : lane_(threadIdx.x % kWidth), part_(threadIdx.x / kWidth) {}
  __device__ int64_t position() const { return int64_t{blockIdx.x} * kWidth + lane_; }
  __device__ int first_channel() const { return part_; }

  // Joins what the threads of a position hold; each gets the result. Uses shared memory.
  template <typename Join>
  __device__ float Reduce(float value, Join join) {
    __shared__ float parts[kColumnThreads / 32][kWidth];
#pragma unroll
    for (int step = 16; step >= kWidth; step /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    __syncthreads();  // an earlier result is still read
    if (threadIdx.x % 32 < kWidth) parts[threadIdx.x / 32][lane_] = value;
    __syncthreads();
    float result = parts[0][lane_];
#pragma unroll
    for (int i = 1; i < kColumnThreads / 32; ++i) result = join(result, parts[i][lane_]);
    return result;
  }

 private:
  const int lane_, part_;
};

// A warp's position of kNhwc. All lanes of the warp call every member.
class NhwcColumn {
 public:
  static constexpr int kParts = 32;

  __device__ int64_t position() const { return (int64_t{blockIdx.x} * kColumnThreads + threadIdx.x) / 32; }
  __device__ int first_channel() const { return threadIdx.x % 32; }

  template <typename Join>
  __device__ float Reduce(float value, Join join) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
  }
};

// Below this many positions narrow blocks are used in kRows: they fill more of the device.
inline constexpr int64_t kNarrowPositions = 16384;
inline constexpr int kNarrowWidth = 8;
inline constexpr int kWideWidth = 32;

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_COLUMNS_CUH_
