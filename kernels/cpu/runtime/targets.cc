#include "kernels/cpu/runtime/targets.h"

#include <cstdlib>
#include <string_view>

#include "hwy/targets.h"

namespace swizzle::cpu {
namespace {

uint32_t Offered() {
  const int64_t targets = hwy::SupportedTargets();
  const uint32_t vnni = __builtin_cpu_supports("avx512vnni") != 0 ? kVnni : 0;
  const uint32_t vbmi = __builtin_cpu_supports("avx512vbmi") != 0 ? kVbmi : 0;
  const uint32_t bf16 = __builtin_cpu_supports("avx512bf16") != 0 ? kAvx512Bf16 : 0;
  const uint32_t avx512 = kAvx512 | vnni | vbmi | bf16;
  return (targets & HWY_AVX2 ? kAvx2 : 0) | (targets & HWY_AVX3 ? avx512 : 0);
}

// For tests, SWIZZLE_CPU in the environment says the most that is used: base, avx2, avx512 or vnni.
uint32_t Allowed() {
  const char* const given = std::getenv("SWIZZLE_CPU");
  const std::string_view most = given == nullptr ? "" : given;
  if (most == "base") return kAnyX86;
  if (most == "avx2") return kAvx2;
  if (most == "avx512") return kAvx2 | kAvx512;
  if (most == "vnni") return kAvx2 | kAvx512 | kVnni;
  return ~0u;
}

}  // namespace

uint32_t DetectFeatures() {
  static const uint32_t features = Offered() & Allowed();
  return features;
}

}  // namespace swizzle::cpu
