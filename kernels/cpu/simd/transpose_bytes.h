// The transposition of 16 rows of 16 bytes, by instructions that every x86-64 has. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_SIMD_TRANSPOSE_BYTES_H_
#define SWIZZLE_KERNELS_CPU_SIMD_TRANSPOSE_BYTES_H_

#include <emmintrin.h>

#include <cstdint>

#include "hwy/base.h"

namespace swizzle::cpu {

inline constexpr int64_t kTransposedBytes = 16;

// Byte c of row r becomes byte r of row c. Strides between rows, in bytes.
inline void TransposeBytes(const uint8_t* from, int64_t from_stride, uint8_t* to, int64_t to_stride) {
  constexpr int64_t kRows = kTransposedBytes;
  __m128i rows[kRows];
  HWY_UNROLL(16)
  for (int64_t r = 0; r < kRows; ++r)
    rows[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + r * from_stride));
  // Places of bytes are numbers of 8 bits, of the row and within it; each turn shifts them around by one.
  HWY_UNROLL(4)
  for (int turn = 0; turn < 4; ++turn) {
    __m128i shuffled[kRows];
    HWY_UNROLL(8)
    for (int64_t r = 0; r < kRows / 2; ++r) {
      shuffled[2 * r] = _mm_unpacklo_epi8(rows[r], rows[r + kRows / 2]);
      shuffled[2 * r + 1] = _mm_unpackhi_epi8(rows[r], rows[r + kRows / 2]);
    }
    HWY_UNROLL(16)
    for (int64_t r = 0; r < kRows; ++r) rows[r] = shuffled[r];
  }
  HWY_UNROLL(16)
  for (int64_t r = 0; r < kRows; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + r * to_stride), rows[r]);
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_SIMD_TRANSPOSE_BYTES_H_
