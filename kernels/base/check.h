// The check of what a programmer promised. Apart from status.h for files that nvcc reads.
#ifndef SWIZZLE_KERNELS_BASE_CHECK_H_
#define SWIZZLE_KERNELS_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace swizzle::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace swizzle::internal

// A broken invariant is a programmer's error: says where, and aborts.
#define SWIZZLE_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::swizzle::internal::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // SWIZZLE_KERNELS_BASE_CHECK_H_
