// CUDA's errors as Status.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_CUDA_STATUS_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_CUDA_STATUS_H_

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <string_view>

#include "kernels/base/status.h"

namespace swizzle::cuda {

// OK, or what failed and CUDA's own words for why: RESOURCE_EXHAUSTED for memory, else INTERNAL. `what` is a verb
// phrase: "allocate 1024 bytes". An error is told once: CUDA forgets it as the thread's last one, else the next thing
// that asks for that would fail in its place.
Status CudaStatus(cudaError_t error, std::string_view what);
Status CudaStatus(cublasStatus_t error, std::string_view what);

// Whether the error is one after which this process gets nothing more out of the device.
bool IsSticky(cudaError_t error);

}  // namespace swizzle::cuda

// Returns the error of a call of CUDA's runtime or of cuBLAS from the enclosing function.
#define SWIZZLE_RETURN_IF_CUDA_ERROR(call, what) SWIZZLE_RETURN_IF_ERROR(::swizzle::cuda::CudaStatus((call), (what)))

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_CUDA_STATUS_H_
