// The transposition of a matrix of floats, in blocks of four columns by as many rows as this machine's vectors hold.
#ifndef SWIZZLE_KERNELS_CPU_SIMD_TRANSPOSE_H_
#define SWIZZLE_KERNELS_CPU_SIMD_TRANSPOSE_H_

#include <cstdint>

#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// to(c, r) = from(r, c) for `rows` and `columns` of `from`; strides between rows, in floats. Touches no other memory.
void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns);

SWIZZLE_DECLARE_PER_TARGET(  //
    void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                   int64_t columns);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_SIMD_TRANSPOSE_H_
