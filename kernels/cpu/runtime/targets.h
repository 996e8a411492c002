// Which instruction sets the CPU kernels are compiled for. Include it before any Highway header.
//
// A kernel file is compiled once a target by hwy/foreach_target.h, each time into its target's namespace: N_AVX3
// (AVX-512 F, BW, CD, DQ and VL), N_AVX2 (with FMA) and N_EMU128 (plain x86-64, in loops that the compiler vectorises).
// The kernel table names the functions of each namespace, so that each is a row of its own.
//
// Highway avoids EMU128 before GCC 12.3, for a wrong 16-bit multiplication (GCC bug 106322); kernels here use none.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_TARGETS_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_TARGETS_H_

#include <cstdint>

#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (~(HWY_AVX3 | HWY_AVX2 | HWY_EMU128))  // newer versions have more

#include "hwy/detect_targets.h"

static_assert(HWY_STATIC_TARGET == HWY_EMU128, "build without -march: kernels choose their instructions at run time");

// Declares the same functions once a target.
#define SWIZZLE_DECLARE_PER_TARGET(...) \
  namespace N_AVX3 {                    \
  __VA_ARGS__                           \
  }                                     \
  namespace N_AVX2 {                    \
  __VA_ARGS__                           \
  }                                     \
  namespace N_EMU128 {                  \
  __VA_ARGS__                           \
  }

namespace swizzle::cpu {

// Bits of Backend::features() and Kernel::required_features.
inline constexpr uint32_t kAnyX86 = 0;
inline constexpr uint32_t kAvx2 = 1u << 0;
inline constexpr uint32_t kAvx512 = 1u << 1;
inline constexpr uint32_t kVnni = 1u << 2;  // AVX-512's
inline constexpr uint32_t kVbmi = 1u << 3;
inline constexpr uint32_t kAvx512Bf16 = 1u << 4;

// What this processor and its operating system offer.
uint32_t DetectFeatures();

// Of one function in all targets' namespaces, the one that this processor runs fastest.
template <typename Function>
Function* Widest(Function* avx512, Function* avx2, Function* base) {
  if (DetectFeatures() & kAvx512) return avx512;
  return DetectFeatures() & kAvx2 ? avx2 : base;
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_TARGETS_H_
