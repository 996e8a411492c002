// Blocks of a cluster, neighbours along x that run at once and reach each other's shared memory (from Hopper on;
// kernels compile for all devices, and are launched in clusters where there are any). Device code.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_CLUSTER_CUH_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_CLUSTER_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {

// Whether the current device has clusters, and runs code that was compiled for one that does; well under a microsecond.
inline bool HasClusters() {
  constexpr int kHopper = 9, kArchitectures[] = {__CUDA_ARCH_LIST__};
  int ordinal = 0, major = 0;
  cudaGetDevice(&ordinal);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  return major >= kHopper && std::ranges::any_of(kArchitectures, [&](int code) { return code / 100 == major; });
}

constexpr int kPortableBlocks = 8;  // of a cluster, that every device with clusters runs at once

// More, where the device has them: LaunchInClusters does it. Errors as of a launch.
template <typename... Params>
void AllowLargeClusters(void (*kernel)(Params...)) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

// How many clusters of so many such blocks the current device has room for at once; 0: it runs none. REQUIRES: the
// kernel allows its dynamic shared memory.
template <typename... Params>
int MostClusters(void (*kernel)(Params...), int threads, int blocks, size_t shared_bytes) {
  if (!HasClusters()) return 0;
  AllowLargeClusters(kernel);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0;
  const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  if (error == cudaSuccess) return clusters;
  cudaGetLastError();  // an answer, and no fault
  return 0;
}

// In clusters of `blocks`, of which the grid is a multiple, each with dynamic shared memory; of one block, on any
// device. The kernel starts while the one before it ends where it can, and so waits for results (dependent_launch.cuh).
// Errors are the next cudaGetLastError's, as of any launch.
template <typename... Params, typename... Args>
void LaunchInClusters(void (*kernel)(Params...), LaunchGrid grid, int threads, int blocks, size_t shared_bytes,
                      cudaStream_t queue, Args&&... args) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = queue;
  config.attrs = attributes;
  config.numAttrs = !HasClusters() ? 0 : blocks > 1 ? 2 : 1;
  if (blocks > kPortableBlocks) AllowLargeClusters(kernel);
  cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define SWIZZLE_CLUSTER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define SWIZZLE_CLUSTER_ASM(...) __trap()
#endif

// By all threads of all blocks: what each wrote before it arrived is there once it has waited.
__device__ inline void ArriveAtCluster() { SWIZZLE_CLUSTER_ASM("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ inline void WaitForCluster() { SWIZZLE_CLUSTER_ASM("barrier.cluster.wait.aligned;" ::: "memory"); }

// By all threads of all blocks, of which those of a warp need not come together: until all are here. What they wrote
// need not be there.
__device__ inline void MeetInCluster() {
  SWIZZLE_CLUSTER_ASM("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

// To where `to`, in shared memory, lies in the cluster's block `rank`.
__device__ inline void StoreAtPeer(float2* to, int rank, float2 value) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  SWIZZLE_CLUSTER_ASM(
      "{\n"
      ".reg .b32 peer;\n"
      "mapa.shared::cluster.u32 peer, %0, %1;\n"
      "st.shared::cluster.v2.f32 [peer], {%2, %3};\n"
      "}\n" ::"r"(address),
      "r"(rank), "f"(value.x), "f"(value.y)
      : "memory");
}
#undef SWIZZLE_CLUSTER_ASM

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_CLUSTER_CUH_
