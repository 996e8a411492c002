// What a warpgroup does with scores of 64 queries as products leave them (tensor_core/wgmma.cuh): softmax by a running
// maximum, as attention.h says, and the outputs. Device code.
//
// A lane has rows g and g + 8 of its warp's 16 queries: of score 4j + 2e + k, row g + 8e and key 8j + 2t + k, where the
// lane is 4g + t; of sums the same with channels.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WARPGROUP_CUH_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WARPGROUP_CUH_

#include "kernels/cuda/conv/operands/tile_ending.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/powers.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {

class RunningSoftmax {
 public:
  __device__ void Reset() {
#pragma unroll
    for (int e = 0; e < 2; ++e) totals_[e] = 0, largest_[e] = -INFINITY;
  }

  // Scores become weights, 2^(score * scale - the largest so far); `growth` is what sums of earlier ones are to be
  // multiplied with. REQUIRES: scale > 0.
  template <int kScores>
  __device__ void Weigh(float (&scores)[kScores], float scale, float (&growth)[2]) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float largest = scores[2 * e];
#pragma unroll
      for (int j = 0; j < kScores; j += 4) largest = fmaxf(largest, fmaxf(scores[j + 2 * e], scores[j + 2 * e + 1]));
      const float after = fmaxf(largest_[e], MaxOfLanes<4>(largest) * scale);
      const float reference = after == -INFINITY ? 0 : after;  // nothing but masked keys
      growth[e] = PowerOfTwo(largest_[e] - reference);
      largest_[e] = after;
      float total = 0;
#pragma unroll
      for (int j = 0; j < kScores; j += 4) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float& score = scores[j + 2 * e + k];
          score = PowerOfTwo(fmaf(score, scale, -reference));
          total += score;
        }
      }
      totals_[e] = fmaf(totals_[e], growth[e], total);
    }
  }

  // What sums of row e are to be multiplied with in the end: zero if it attended to nothing.
  __device__ float Inverse(int e) const {
    const float total = SumOfLanes<4>(totals_[e]);
    return total == 0 ? 0.0f : 1 / total;
  }

 private:
  float totals_[2];  // of the lane's weights
  float largest_[2];
};

// Weights as a product leaves them are the left operand of the next.
template <typename T, int kScores>
__device__ void PackWeights(const float (&scores)[kScores], uint32_t (&weights)[kScores / 8][4]) {
#pragma unroll
  for (int step = 0; step < kScores / 8; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[step][i] = PackPair<T>(scores[step * 8 + i * 2], scores[step * 8 + i * 2 + 1]);
    }
    FinishOperand(weights[step]);
  }
}

template <int kSums>
__device__ void Grow(float (&sums)[kSums], const float (&growth)[2]) {
#pragma unroll
  for (int i = 0; i < kSums; ++i) sums[i] *= growth[i / 2 % 2];
}

// Row e's channels to those of its token, if it is real. REQUIRES: `to` is a multiple of 16 bytes.
template <typename T, int kSums>
__device__ void StoreToken(const float (&sums)[kSums], int e, float factor, bool real, T* to) {
  to += threadIdx.x % 4 * 8;
#pragma unroll
  for (int i = 0; i < kSums / 16; ++i) {
    uint32_t pairs[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = (i * 4 + j) * 4 + 2 * e;
      pairs[j] = PackPair<T>(sums[at] * factor, sums[at + 1] * factor);
    }
    TransposeInFours(pairs);
    if (real) *reinterpret_cast<uint4*>(to + i * 32) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WARPGROUP_CUH_
