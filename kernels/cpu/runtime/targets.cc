#include "kernels/cpu/runtime/targets.h"

#include "hwy/targets.h"

namespace swizzle::cpu {

uint32_t DetectFeatures() {
  const int64_t targets = hwy::SupportedTargets();
  return (targets & HWY_AVX2 ? kAvx2 : 0) | (targets & HWY_AVX3 ? kAvx512 : 0);
}

}  // namespace swizzle::cpu
