#include "kernels/cpu/transpose.h"

#include <xmmintrin.h>

namespace swizzle::cpu {
namespace {

void Transpose4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m128 row0 = _mm_loadu_ps(from);
  __m128 row1 = _mm_loadu_ps(from + from_stride);
  __m128 row2 = _mm_loadu_ps(from + 2 * from_stride);
  __m128 row3 = _mm_loadu_ps(from + 3 * from_stride);
  _MM_TRANSPOSE4_PS(row0, row1, row2, row3);
  _mm_storeu_ps(to, row0);
  _mm_storeu_ps(to + to_stride, row1);
  _mm_storeu_ps(to + 2 * to_stride, row2);
  _mm_storeu_ps(to + 3 * to_stride, row3);
}

}  // namespace

void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns) {
  const int64_t whole_rows = rows / 4 * 4;
  const int64_t whole_columns = columns / 4 * 4;
  for (int64_t c = 0; c < whole_columns; c += 4) {
    for (int64_t r = 0; r < whole_rows; r += 4) {
      Transpose4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t begin = r < whole_rows ? whole_columns : 0;
    for (int64_t c = begin; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
}

}  // namespace swizzle::cpu
