#include "kernels/cpu/runtime/cache_sizes.h"

#include <unistd.h>

namespace swizzle::cpu {
namespace {

CacheSizes AskSystem() {
  CacheSizes sizes;
  if (const long first = sysconf(_SC_LEVEL1_DCACHE_SIZE); first > 0) sizes.first = first;
  if (const long second = sysconf(_SC_LEVEL2_CACHE_SIZE); second > 0) sizes.second = second;
  return sizes;
}

}  // namespace

const CacheSizes& HostCacheSizes() {
  static const CacheSizes sizes = AskSystem();
  return sizes;
}

}  // namespace swizzle::cpu
