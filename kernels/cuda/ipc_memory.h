// Memory of a GPU that another process has exported by cudaIpcGetMemHandle.
//
// This header needs no CUDA: in programs its function opens the module (cuda_module.h) and calls its own.
#ifndef SWIZZLE_KERNELS_CUDA_IPC_MEMORY_H_
#define SWIZZLE_KERNELS_CUDA_IPC_MEMORY_H_

#include <memory>
#include <string_view>

#include "kernels/backend/shared_device_memory.h"

namespace swizzle {

// `handle`: the bytes of a cudaIpcMemHandle_t. INVALID_ARGUMENT where it has another length, or CUDA does not open it
// on GPU `ordinal`, which is one that the process uses. UNIMPLEMENTED in a build without CUDA.
StatusOr<std::unique_ptr<SharedDeviceMemory>> OpenCudaIpcMemory(int ordinal, std::string_view handle);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CUDA_IPC_MEMORY_H_
