// Whether more threads can be started, and what limits them. Who doesn't ask may wait for ever for one that could not
// be started: pthreadpool does, and gRPC. Thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_START_THREADS_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_START_THREADS_H_

#include <string>

#include "kernels/base/status.h"

namespace swizzle::cpu {

// Whether the system lets this process start so many more, all at a time: starts them, and ends them again.
bool CanStartThreads(int count);

// The limits that this process has on threads, or on the address space that their stacks take, as a message names them:
// "ulimit -u is 64, pids.max of its control group is 128". "the system's" where it has none of its own.
std::string ThreadLimits();

// Whether one of those limits is so low that threads may run out in a server of many models.
bool MayThreadsRunOut();

// RESOURCE_EXHAUSTED unless CanStartThreads(count). It names the limits, and says to raise them.
Status CheckThreads(int count);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_START_THREADS_H_
