// Means and variances of columns whose rows the blocks of a cluster share, for layer norms at the end of products.
// Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_NORM_MOMENTS_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_NORM_MOMENTS_CUH_

#include "kernels/cuda/runtime/cluster.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {

// What is known of some values: their mean, and the squares of their differences from it.
struct Moments {
  float mean, squares;
};

// Of two sets of `count` values each, joined.
__device__ inline Moments Join(const Moments& a, const Moments& b, float count) {
  const float apart = a.mean - b.mean;
  return {(a.mean + b.mean) / 2, fmaf(apart * apart, count / 2, a.squares + b.squares)};
}

// Of `used` sets, kMost at most, of `count` values each, `pitch` apart.
template <int kMost>
__device__ Moments JoinAll(const float2* sets, int pitch, int used, float count) {
  float mean = 0, squares = 0;
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i < used) mean += sets[i * pitch].x;
  }
  mean /= static_cast<float>(used);
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i >= used) continue;
    const float2 set = sets[i * pitch];
    const float apart = set.x - mean;
    squares += fmaf(apart * apart, count, set.y);
  }
  return {mean, squares};
}

// To where `to` lies in the cluster's block `rank`, whose barrier at `told`'s place counts the bytes when they are
// there.
__device__ inline void StoreAndTell(const float2* to, const Barrier& told, int rank, const Moments& moments) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 peer, peer_told;\n"
      "mapa.shared::cluster.u32 peer, %0, %2;\n"
      "mapa.shared::cluster.u32 peer_told, %1, %2;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [peer], {%3, %4}, [peer_told];\n"
      "}\n" ::"r"(SharedAddress(to)),
      "r"(SharedAddress(&told)), "r"(rank), "f"(moments.mean), "f"(moments.squares)
      : "memory");
#else
  __trap();
#endif
}

// In shared memory: what warps tell their block of kWidth columns, and what was found of each.
template <int kWarps, int kWidth>
struct BlockMoments {
  float2 of_warps[kWarps][kWidth];
  float2 found[kWidth];  // the mean, and what brings the variance to 1
};

// Likewise: what blocks, kMostBlocks at most, tell each other, at any time. In order: Init, by one thread; all blocks
// of the cluster meet; warps fill of_warps and the block meets; Tell and Find; the block meets.
template <int kWarps, int kWidth, int kMostBlocks>
struct MomentExchange {
  using OfBlock = BlockMoments<kWarps, kWidth>;
  float2 of_blocks[kMostBlocks][kWidth];  // filled by all blocks
  Barrier told;                           // all blocks' are there

  __device__ void Init(int blocks) {
    told.Init(1);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    told.ArriveExpecting(static_cast<uint32_t>(blocks * kWidth * sizeof(float2)));
  }

  // By kWidth threads, one a column: to all blocks, what the warps of this one found of so many rows each.
  __device__ void Tell(const OfBlock& block, int column, float rows_of_warp, int blocks) {
    const Moments own = JoinAll<kWarps>(&block.of_warps[0][column], kWidth, kWarps, rows_of_warp);
    const int rank = static_cast<int>(blockIdx.x) % blocks;
    for (int peer = 0; peer < blocks; ++peer) StoreAndTell(&of_blocks[rank][column], told, peer, own);
  }

  // Likewise, of so many rows a block. Not centred: of differences from 0.
  __device__ void Find(OfBlock& block, int column, float rows_of_block, int blocks, float epsilon, bool centred) {
    told.Wait(0);
    Moments all = JoinAll<kMostBlocks>(&of_blocks[0][column], kWidth, blocks, rows_of_block);
    const float count = static_cast<float>(blocks) * rows_of_block;
    if (!centred) all = {0, fmaf(all.mean * all.mean, count, all.squares)};
    block.found[column] = {all.mean, rsqrtf(all.squares / count + epsilon)};
  }
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_NORM_MOMENTS_CUH_
