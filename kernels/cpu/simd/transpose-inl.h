// The transposition of a matrix of floats (transpose.h) with this target's vectors. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_
#undef SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_TRANSPOSE_INL_H_
#endif

#include <xmmintrin.h>

#include "hwy/highway.h"
#include "kernels/cpu/simd/transpose.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Vectors of blocks of 128 bits. LoadBlocks reads four floats of each of as many rows as there are blocks, rows that
// are four apart. In intrinsics: Highway's interleaving takes 1.1 times as long with AVX2 and 3.3 times as long
// without.
HWY_INLINE void LoadBlocks(const float* from, int64_t, __m128& blocks) { blocks = _mm_loadu_ps(from); }
HWY_INLINE __m128 Low(__m128 a, __m128 b) { return _mm_unpacklo_ps(a, b); }
HWY_INLINE __m128 High(__m128 a, __m128 b) { return _mm_unpackhi_ps(a, b); }
HWY_INLINE __m128 LowPairs(__m128 a, __m128 b) { return _mm_shuffle_ps(a, b, 0x44); }
HWY_INLINE __m128 HighPairs(__m128 a, __m128 b) { return _mm_shuffle_ps(a, b, 0xEE); }
HWY_INLINE void StoreBlocks(float* to, __m128 blocks) { _mm_storeu_ps(to, blocks); }
#if HWY_TARGET == HWY_AVX3
using WidestBlocks = __m512;
HWY_INLINE void LoadBlocks(const float* from, int64_t stride, __m512& blocks) {
  blocks = _mm512_castps128_ps512(_mm_loadu_ps(from));
  blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(from + 4 * stride), 1);
  blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(from + 8 * stride), 2);
  blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(from + 12 * stride), 3);
}
HWY_INLINE __m512 Low(__m512 a, __m512 b) { return _mm512_unpacklo_ps(a, b); }
HWY_INLINE __m512 High(__m512 a, __m512 b) { return _mm512_unpackhi_ps(a, b); }
HWY_INLINE __m512 LowPairs(__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0x44); }
HWY_INLINE __m512 HighPairs(__m512 a, __m512 b) { return _mm512_shuffle_ps(a, b, 0xEE); }
HWY_INLINE void StoreBlocks(float* to, __m512 blocks) { _mm512_storeu_ps(to, blocks); }
#elif HWY_TARGET == HWY_AVX2
using WidestBlocks = __m256;
HWY_INLINE void LoadBlocks(const float* from, int64_t stride, __m256& blocks) {
  blocks = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * stride), 1);
}
HWY_INLINE __m256 Low(__m256 a, __m256 b) { return _mm256_unpacklo_ps(a, b); }
HWY_INLINE __m256 High(__m256 a, __m256 b) { return _mm256_unpackhi_ps(a, b); }
HWY_INLINE __m256 LowPairs(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0x44); }
HWY_INLINE __m256 HighPairs(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0xEE); }
HWY_INLINE void StoreBlocks(float* to, __m256 blocks) { _mm256_storeu_ps(to, blocks); }
#else
using WidestBlocks = __m128;
#endif

// As many rows as Blocks has floats, of four columns: a 4x4 transposition within each block.
template <typename Blocks>
HWY_INLINE void TransposeBlock(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Blocks row0, row1, row2, row3;
  LoadBlocks(from, from_stride, row0);
  LoadBlocks(from + from_stride, from_stride, row1);
  LoadBlocks(from + 2 * from_stride, from_stride, row2);
  LoadBlocks(from + 3 * from_stride, from_stride, row3);
  const Blocks low01 = Low(row0, row1), low23 = Low(row2, row3);
  const Blocks high01 = High(row0, row1), high23 = High(row2, row3);
  StoreBlocks(to, LowPairs(low01, low23));
  StoreBlocks(to + to_stride, HighPairs(low01, low23));
  StoreBlocks(to + 2 * to_stride, LowPairs(high01, high23));
  StoreBlocks(to + 3 * to_stride, HighPairs(high01, high23));
}

// The rows from `row` on that fill Blocks, of all columns but up to three. Returns the first row left.
template <typename Blocks>
HWY_INLINE int64_t TransposeRows(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t row,
                                 int64_t rows, int64_t columns) {
  constexpr int64_t kRows = sizeof(Blocks) / sizeof(float);
  for (; row + kRows <= rows; row += kRows) {
    for (int64_t c = 0; c + 4 <= columns; c += 4) {
      TransposeBlock<Blocks>(from + row * from_stride + c, from_stride, to + c * to_stride + row, to_stride);
    }
  }
  return row;
}

// As transpose.h has it.
HWY_INLINE void TransposeHere(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                              int64_t columns) {
  int64_t whole_rows = TransposeRows<WidestBlocks>(from, from_stride, to, to_stride, 0, rows, columns);
  whole_rows = TransposeRows<__m128>(from, from_stride, to, to_stride, whole_rows, rows, columns);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = r < whole_rows ? columns / 4 * 4 : 0;
    for (int64_t c = begin; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
