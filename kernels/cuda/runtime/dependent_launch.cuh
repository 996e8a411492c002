// Kernels that start while the one before them in their stream ends (programmatic dependent launch, from Hopper on):
// what a kernel does before it needs another's results, and its launch itself, then cost no time. Recordings keep it.
//
// Every block of such a kernel calls WaitForResults before it reads what kernels before it write, or writes what they
// read; weights are there already. So a kernel ends only after all before it have, whatever these are. One that calls
// LetNextStart when it begins lets the next one's blocks come as room is left, and wait in turn.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_DEPENDENT_LAUNCH_CUH_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_DEPENDENT_LAUNCH_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "kernels/cuda/runtime/cluster.cuh"
#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {

__device__ inline void WaitForResults() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline void LetNextStart() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// As any launch on devices that have none such. Errors are the next cudaGetLastError's, as of any launch.
template <typename... Params, typename... Args>
void LaunchDependent(void (*kernel)(Params...), LaunchGrid grid, dim3 block, size_t shared_bytes, cudaStream_t queue,
                     Args&&... args) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = queue;
  config.attrs = &early;
  config.numAttrs = HasClusters() ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...);
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_DEPENDENT_LAUNCH_CUH_
