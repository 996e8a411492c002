// The transposition of a matrix of floats, in 4x4 blocks of SSE registers, which every x86-64 has: wider ones gain
// nothing on memory.
#ifndef SWIZZLE_KERNELS_CPU_TRANSPOSE_H_
#define SWIZZLE_KERNELS_CPU_TRANSPOSE_H_

#include <cstdint>

namespace swizzle::cpu {

// to(c, r) = from(r, c) for `rows` and `columns` of `from`; strides between rows, in floats. Touches no other memory.
void Transpose(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows, int64_t columns);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TRANSPOSE_H_
