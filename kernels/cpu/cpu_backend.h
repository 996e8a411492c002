// The CPU backend: Highway kernels dispatched at run time (AVX-512, AVX2, or a baseline for any x86-64), oneDNN for
// dense layers, one pthreadpool per stream.
#ifndef SWIZZLE_KERNELS_CPU_CPU_BACKEND_H_
#define SWIZZLE_KERNELS_CPU_CPU_BACKEND_H_

#include <memory>

#include "kernels/backend/backend.h"

namespace swizzle {

std::unique_ptr<Backend> NewCpuBackend();

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CPU_CPU_BACKEND_H_
