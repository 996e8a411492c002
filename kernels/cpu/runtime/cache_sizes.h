// The caches of a core, which blocking is sized by.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_CACHE_SIZES_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_CACHE_SIZES_H_

#include <cstdint>

namespace swizzle::cpu {

// Bytes of a core's own data caches.
struct CacheSizes {
  int64_t first = int64_t{32} << 10;
  int64_t second = int64_t{1} << 20;
};

// This machine's, as the system tells them; a level that it does not tell has the size above. Thread-safe.
const CacheSizes& HostCacheSizes();

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_CACHE_SIZES_H_
