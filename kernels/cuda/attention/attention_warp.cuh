// What a warp holds of dense attention on tensor cores, whatever the layout, and its softmax. Device code.
//
// A warp has 16 queries: their operands, sums and scores are in registers, laid out as products have them (mma.cuh). A
// shape S says of which type (T), and how many steps of products a head's channels are (kSteps), how many octets
// (kChannelOctets), and octets of keys a tile (kOctets).
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WARP_CUH_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WARP_CUH_

#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/powers.cuh"
#include "kernels/cuda/tensor_core/mma.cuh"

namespace swizzle::cuda {

// c += a * b; of 32 bytes of each row of a and column of b.
template <typename T>
__device__ void Multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  Mma<std::conditional_t<std::is_same_v<T, float>, Tf32, T>>(c, a, b0, b1);
}

// What a warp knows of its queries; rows g and g + 8 are a lane's.
template <typename S>
struct Group {
  uint32_t queries[S::kSteps][4];
  float sums[S::kChannelOctets][4];
  float largest[2];  // scores
  float totals[2];   // of the lane's weights

  __device__ Group() {
#pragma unroll
    for (auto& octet : sums) {
#pragma unroll
      for (float& sum : octet) sum = 0;
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      largest[r] = -INFINITY;
      totals[r] = 0;
    }
  }
};

// Scores become weights, powers of two relative to the largest score so far; what was summed follows.
template <typename S>
__device__ void Weigh(Group<S>& group, float (&scores)[S::kOctets][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = group.largest[r];
#pragma unroll
    for (int j = 0; j < S::kOctets; ++j) largest = fmaxf(largest, fmaxf(scores[j][2 * r], scores[j][2 * r + 1]));
    largest = MaxOfLanes<4>(largest);
    const float reference = largest == -INFINITY ? 0.0f : largest;  // nothing but masked keys
    const float growth = PowerOfTwo(group.largest[r] - reference);
    group.largest[r] = largest;
    group.totals[r] *= growth;
#pragma unroll
    for (auto& sum : group.sums) {
      sum[2 * r] *= growth;
      sum[2 * r + 1] *= growth;
    }
#pragma unroll
    for (int j = 0; j < S::kOctets; ++j) {
#pragma unroll
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        scores[j][e] = PowerOfTwo(scores[j][e] - reference);
        group.totals[r] += scores[j][e];
      }
    }
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_WARP_CUH_
