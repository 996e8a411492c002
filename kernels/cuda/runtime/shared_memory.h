// Dynamic shared memory beyond the 48 KiB that a launch may have unasked. Thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_SHARED_MEMORY_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_SHARED_MEMORY_H_

#include <cuda_runtime.h>

#include <cstddef>

namespace swizzle::cuda {

// What a block may have at most on the current device; where there is none, on the largest.
inline size_t MostSharedMemory() {
  constexpr int kLargest = 227 * 1024;
  int ordinal = 0, bytes = 0;
  cudaGetDevice(&ordinal);
  const cudaError_t error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);
  return static_cast<size_t>(error == cudaSuccess ? bytes : kLargest);
}

// Lets a kernel's launches on the current device have so much; it costs well under a microsecond. The limit is the
// kernel's, for all threads, and one that lowers it fails another's launch: so it is the same each time, what the
// largest launch needs or MostSharedMemory. Where a device has less, the launch fails.
template <typename... Params>
void AllowSharedMemory(void (*kernel)(Params...), size_t bytes) {
  constexpr size_t kUnasked = 48 * 1024;
  if (bytes > kUnasked) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_SHARED_MEMORY_H_
