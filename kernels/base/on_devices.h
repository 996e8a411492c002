// What marks functions that GPUs' kernels call, too, in headers that the host's compiler reads alone.
#ifndef SWIZZLE_KERNELS_BASE_ON_DEVICES_H_
#define SWIZZLE_KERNELS_BASE_ON_DEVICES_H_

#include "kernels/base/check.h"

// SWIZZLE_CALLS_ANY stands before a template that is so marked and calls a function it is given, which may be the
// host's or the device's alone.
#ifdef __CUDACC__
#define SWIZZLE_ON_DEVICES_TOO __host__ __device__
#define SWIZZLE_CALLS_ANY _Pragma("nv_exec_check_disable")
#else
#define SWIZZLE_ON_DEVICES_TOO
#define SWIZZLE_CALLS_ANY
#endif

// What no caller may reach: says so and aborts, but on a GPU, which takes it that it never comes there.
#ifdef __CUDA_ARCH__
#define SWIZZLE_NOT_REACHED(why) __builtin_unreachable()
#else
#define SWIZZLE_NOT_REACHED(why) ::swizzle::internal::CheckFailed(__FILE__, __LINE__, why)
#endif

#endif  // SWIZZLE_KERNELS_BASE_ON_DEVICES_H_
