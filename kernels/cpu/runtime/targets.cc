#include "kernels/cpu/runtime/targets.h"

#include "hwy/targets.h"

namespace swizzle::cpu {

uint32_t DetectFeatures() {
  const int64_t targets = hwy::SupportedTargets();
  const uint32_t vnni = __builtin_cpu_supports("avx512vnni") != 0 ? kVnni : 0;
  const uint32_t vbmi = __builtin_cpu_supports("avx512vbmi") != 0 ? kVbmi : 0;
  const uint32_t avx512 = kAvx512 | vnni | vbmi;
  return (targets & HWY_AVX2 ? kAvx2 : 0) | (targets & HWY_AVX3 ? avx512 : 0);
}

}  // namespace swizzle::cpu
