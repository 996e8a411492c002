// The CUDA backend: one GPU, its memory and streams, and the kernels of kernel_table.cc.
//
// This header needs no CUDA: in programs these functions open the module (cuda_module.h) and call its own.
#ifndef SWIZZLE_KERNELS_CUDA_CUDA_BACKEND_H_
#define SWIZZLE_KERNELS_CUDA_CUDA_BACKEND_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "kernels/backend/device_functions.h"

namespace swizzle {

// GPUs that this process can use. UNIMPLEMENTED in a build without CUDA; UNAVAILABLE where there is no GPU, no driver,
// or too old a driver. The message says which, and what to do.
StatusOr<int> CountCudaDevices();

// The GPU `ordinal`, as CUDA counts them. Errors as above; INVALID_ARGUMENT if there is none of that number;
// UNIMPLEMENTED if it is older than what the kernels are built for.
StatusOr<std::unique_ptr<Backend>> NewCudaBackend(int ordinal);

// What GPUs compute beside their rows. UNIMPLEMENTED in a build without CUDA.
StatusOr<const DeviceFunctions*> CudaDeviceFunctions();

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CUDA_CUDA_BACKEND_H_
