// What libswizzle_cuda.so exports.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_module.h"
#include "kernels/cuda/ipc_memory.h"
#include "kernels/cuda/sparse_input.h"

extern "C" __attribute__((visibility("default"))) const swizzle::cuda::ModuleFunctions* SwizzleCudaModule() {
  static constexpr swizzle::cuda::ModuleFunctions kFunctions = {
      .build = swizzle::cuda::kModuleBuild,
      .count_devices = swizzle::CountCudaDevices,
      .new_backend = swizzle::NewCudaBackend,
      .functions = swizzle::CudaDeviceFunctions,
      .time_sparse_input = swizzle::TimeSparseInput,
      .open_ipc_memory = swizzle::OpenCudaIpcMemory,
  };
  return &kFunctions;
}
