// Whether there are threads for a pool: pthreadpool waits for ever for one that could not be started.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_START_THREADS_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_START_THREADS_H_

namespace swizzle::cpu {

// Whether the system lets this process start so many more, all at a time: starts them, and ends them again.
bool CanStartThreads(int count);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_START_THREADS_H_
