// The transposition of a matrix of floats (transpose.h) with this target's vectors. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_
#undef SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_
#endif

#include <xmmintrin.h>

#include "hwy/highway.h"
#include "kernels/cpu/transpose.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Four floats of each of kLanes / 4 rows that are four apart, in blocks of 128 bits.
#if HWY_TARGET == HWY_AVX3
using Blocks = __m512;
HWY_INLINE Blocks LoadBlocks(const float* from, int64_t stride) {
  Blocks blocks = _mm512_castps128_ps512(_mm_loadu_ps(from));
  blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(from + 4 * stride), 1);
  blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(from + 8 * stride), 2);
  return _mm512_insertf32x4(blocks, _mm_loadu_ps(from + 12 * stride), 3);
}
HWY_INLINE Blocks Low(Blocks a, Blocks b) { return _mm512_unpacklo_ps(a, b); }
HWY_INLINE Blocks High(Blocks a, Blocks b) { return _mm512_unpackhi_ps(a, b); }
HWY_INLINE Blocks LowPairs(Blocks a, Blocks b) { return _mm512_shuffle_ps(a, b, 0x44); }
HWY_INLINE Blocks HighPairs(Blocks a, Blocks b) { return _mm512_shuffle_ps(a, b, 0xEE); }
HWY_INLINE void StoreBlocks(float* to, Blocks blocks) { _mm512_storeu_ps(to, blocks); }
constexpr int64_t kBlockRows = 16;
#elif HWY_TARGET == HWY_AVX2
using Blocks = __m256;
HWY_INLINE Blocks LoadBlocks(const float* from, int64_t stride) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * stride), 1);
}
HWY_INLINE Blocks Low(Blocks a, Blocks b) { return _mm256_unpacklo_ps(a, b); }
HWY_INLINE Blocks High(Blocks a, Blocks b) { return _mm256_unpackhi_ps(a, b); }
HWY_INLINE Blocks LowPairs(Blocks a, Blocks b) { return _mm256_shuffle_ps(a, b, 0x44); }
HWY_INLINE Blocks HighPairs(Blocks a, Blocks b) { return _mm256_shuffle_ps(a, b, 0xEE); }
HWY_INLINE void StoreBlocks(float* to, Blocks blocks) { _mm256_storeu_ps(to, blocks); }
constexpr int64_t kBlockRows = 8;
#else
using Blocks = __m128;
HWY_INLINE Blocks LoadBlocks(const float* from, int64_t) { return _mm_loadu_ps(from); }
HWY_INLINE Blocks Low(Blocks a, Blocks b) { return _mm_unpacklo_ps(a, b); }
HWY_INLINE Blocks High(Blocks a, Blocks b) { return _mm_unpackhi_ps(a, b); }
HWY_INLINE Blocks LowPairs(Blocks a, Blocks b) { return _mm_shuffle_ps(a, b, 0x44); }
HWY_INLINE Blocks HighPairs(Blocks a, Blocks b) { return _mm_shuffle_ps(a, b, 0xEE); }
HWY_INLINE void StoreBlocks(float* to, Blocks blocks) { _mm_storeu_ps(to, blocks); }
constexpr int64_t kBlockRows = 4;
#endif

// kBlockRows rows of four columns: a 4x4 transposition within each block of 128 bits.
HWY_INLINE void TransposeBlock(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  const Blocks row0 = LoadBlocks(from, from_stride), row1 = LoadBlocks(from + from_stride, from_stride);
  const Blocks row2 = LoadBlocks(from + 2 * from_stride, from_stride);
  const Blocks row3 = LoadBlocks(from + 3 * from_stride, from_stride);
  const Blocks low01 = Low(row0, row1), low23 = Low(row2, row3);
  const Blocks high01 = High(row0, row1), high23 = High(row2, row3);
  StoreBlocks(to, LowPairs(low01, low23));
  StoreBlocks(to + to_stride, HighPairs(low01, low23));
  StoreBlocks(to + 2 * to_stride, LowPairs(high01, high23));
  StoreBlocks(to + 3 * to_stride, HighPairs(high01, high23));
}

// As transpose.h has it.
HWY_INLINE void TransposeHere(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                              int64_t columns) {
  const int64_t whole_rows = rows / kBlockRows * kBlockRows;
  const int64_t whole_columns = columns / 4 * 4;
  for (int64_t r = 0; r < whole_rows; r += kBlockRows) {
    for (int64_t c = 0; c < whole_columns; c += 4) {
      TransposeBlock(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = r < whole_rows ? whole_columns : 0;
    for (int64_t c = begin; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
