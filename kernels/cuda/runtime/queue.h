// What a launch needs to know of its stream. Apart from cuda_stream.h for the reason that kernel_args.h gives.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_QUEUE_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_QUEUE_H_

#include <cuda_runtime.h>

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// REQUIRES: the stream comes from a CUDA backend, as every stream does that a CUDA kernel is given.
cudaStream_t QueueOf(Stream& stream);
int MultiprocessorsOf(Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_QUEUE_H_
