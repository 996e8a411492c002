// Sums of products of bfloat16, two to a lane of 32 bits, with AVX512_BF16. Include it in sources that are compiled
// once; what uses it stands between SWIZZLE_BEFORE_BF16 and SWIZZLE_AFTER_BF16, and is compiled for these instructions.
#ifndef SWIZZLE_KERNELS_CPU_SIMD_BFLOAT16_PAIRS_INL_H_
#define SWIZZLE_KERNELS_CPU_SIMD_BFLOAT16_PAIRS_INL_H_

#include <immintrin.h>

#include <cstdint>

#include "hwy/base.h"

#define SWIZZLE_INLINE inline __attribute__((always_inline))

// GCC 12 takes what its own intrinsics leave undefined for a mistake (GCC bug 105593).
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#define SWIZZLE_BEFORE_BF16 HWY_PUSH_ATTRIBUTES("avx,avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#define SWIZZLE_AFTER_BF16 HWY_POP_ATTRIBUTES

SWIZZLE_BEFORE_BF16
namespace swizzle::cpu {
namespace {  // of each source file that includes this

constexpr int64_t kLanes = 16;

// Two bfloat16 in each lane, the first in the lower half. In memory a uint32_t each.
using PairVector = __m512i;

SWIZZLE_INLINE PairVector Paired(__m512 first, __m512 second) {
  alignas(64) static constexpr uint16_t kInTurn[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                       8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  return _mm512_permutexvar_epi16(_mm512_load_si512(kInTurn), halves);
}

// sums + a.first * b.first + a.second * b.second
SWIZZLE_INLINE __m512 AddProducts(__m512 sums, PairVector a, PairVector b) {
  return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

SWIZZLE_INLINE PairVector Broadcast(uint32_t pair) { return _mm512_set1_epi32(static_cast<int>(pair)); }

SWIZZLE_INLINE __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>(count >= kLanes ? 0xffff : (1 << count) - 1);
}

// 2^x for x <= 127, to 8.6e-5 relative, and exact where x is whole; 0 where FP32 runs out.
SWIZZLE_INLINE __m512 PowerOfTwo(__m512 x) {
  const __m512 rest = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);  // x - floor(x)
  // The least relative error from 0 to 1, by a fit of our own.
  __m512 result = _mm512_set1_ps(0.0770669878f);
  result = _mm512_fmadd_ps(result, rest, _mm512_set1_ps(0.227645054f));
  result = _mm512_fmadd_ps(result, rest, _mm512_set1_ps(0.695116758f));
  result = _mm512_fmadd_ps(result, rest, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(result, x);  // result * 2^floor(x)
}

// sums[r] += a[r] * b, over `depth` pairs; b is rows of kVectors vectors.
template <int kRows, int kVectors>
struct Tile {
  __m512 sums[kRows][kVectors];

  SWIZZLE_INLINE void SetZero() {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(8)
      for (int j = 0; j < kVectors; ++j) sums[r][j] = _mm512_setzero_ps();
    }
  }

  // a[r] at a + r * row_stride, its pairs depth_stride apart.
  SWIZZLE_INLINE void MultiplyAdd(const uint32_t* a, int64_t row_stride, int64_t depth_stride, int64_t depth,
                                  const uint32_t* b) {
    for (; depth > 0; --depth, a += depth_stride, b += kVectors * kLanes) {
      PairVector columns[kVectors];
      HWY_UNROLL(8)
      for (int j = 0; j < kVectors; ++j) columns[j] = _mm512_load_si512(b + j * kLanes);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        const PairVector row = Broadcast(a[r * row_stride]);
        HWY_UNROLL(8)
        for (int j = 0; j < kVectors; ++j) sums[r][j] = AddProducts(sums[r][j], row, columns[j]);
      }
    }
  }
};

}  // namespace
}  // namespace swizzle::cpu
SWIZZLE_AFTER_BF16

#endif  // SWIZZLE_KERNELS_CPU_SIMD_BFLOAT16_PAIRS_INL_H_
