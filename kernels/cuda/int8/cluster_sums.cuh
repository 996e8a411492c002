// Sums of whole numbers that the blocks of a cluster add up, each block having a part of K. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_CLUSTER_SUMS_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_CLUSTER_SUMS_CUH_

#include "kernels/cuda/runtime/cluster.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {

// What lies at `from`, in shared memory, in the cluster's block `rank`.
__device__ inline int4 LoadFromPeer(const int4* from, int rank) {
  int4 value = {};
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .b32 peer;\n"
      "mapa.shared::cluster.u32 peer, %4, %5;\n"
      "ld.shared::cluster.v4.s32 {%0, %1, %2, %3}, [peer];\n"
      "}\n"
      : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
      : "r"(SharedAddress(from)), "r"(rank)
      : "memory");
#endif
  return value;
}

// Each thread's sums in block 0, of the same thread in all kSplit blocks. By all threads of all of them; `parked` is
// room in shared memory for a block's sums, at the same place in each.
template <int kSplit, int kThreads, int kSums>
__device__ void AddUpCluster(int rank, int4* parked, int32_t (&sums)[kSums]) {
  parked += threadIdx.x;
  __syncthreads();
  if (rank > 0) {
#pragma unroll
    for (int i = 0; i < kSums / 4; ++i) {
      parked[i * kThreads] = make_int4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    }
  }
  ArriveAtCluster();
  WaitForCluster();
  if (rank == 0) {
#pragma unroll
    for (int peer = 1; peer < kSplit; ++peer) {
#pragma unroll
      for (int i = 0; i < kSums / 4; ++i) {
        const int4 part = LoadFromPeer(parked + i * kThreads, peer);
        sums[4 * i] += part.x, sums[4 * i + 1] += part.y, sums[4 * i + 2] += part.z, sums[4 * i + 3] += part.w;
      }
    }
  }
  ArriveAtCluster();
  WaitForCluster();  // what is read stays until then
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_CLUSTER_SUMS_CUH_
