// What stands for the step before while a step is timed.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_LEAD_IN_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_LEAD_IN_H_

#include <cuda_runtime.h>

namespace swizzle::cuda {

// Queues a kernel of about two microseconds that does nothing, and lets the next one start half way. What a step adds
// to it is what it adds to a plan: its launch, and all that it does before it needs results (dependent_launch.cuh),
// happen beside the step before.
void QueueLeadIn(cudaStream_t queue, int multiprocessors);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_LEAD_IN_H_
