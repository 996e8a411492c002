// Matrix products by a warp, and how its lanes read operands from shared memory and turn them. Device code.
//
// Lane l of a warp is (g, t) = (l / 4, l % 4). Rows of the left operand and columns of the right one are runs of words
// of 32 bits along the depth, whatever the type. Of 16 by 8 words on the left a lane holds a = {(g, t), (g + 8, t),
// (g, t + 4), (g + 8, t + 4)}; of 8 columns of 8 words on the right b = {(g, t), (g, t + 4)}, and of 16 words of a
// sparse product (g, t + 8) and (g, t + 12) as well; of a product of 16 by 8 c = {(g, 2t), (g, 2t + 1), (g + 8, 2t),
// (g + 8, 2t + 1)} (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions").
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_MMA_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_MMA_CUH_

#include "kernels/cuda/tensor_core/operand.cuh"

namespace swizzle::cuda {

// Turing has none of these products. Kernels that use them compile for it, so that one build serves all devices, and
// are not launched there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define SWIZZLE_MMA(k, sparse_k, sum, left, right, constraint, kind, ...)      \
  asm("mma.sync.aligned.m16n8k" k ".row.col." sum "." left "." right "." sum   \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"       \
      : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#define SWIZZLE_SPARSE_MMA(k, sparse_k, sum, left, right, constraint, kind, ...)                         \
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k" sparse_k ".row.col." sum "." left "." right "." sum \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"             \
      : constraint(c[0]), constraint(c[1]), constraint(c[2]), constraint(c[3])                           \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata))
#else
#define SWIZZLE_MMA(...) __trap()
#define SWIZZLE_SPARSE_MMA(...) __trap()
#endif

// c += a * b, of 16 by 32 bytes and 32 bytes by 8.
template <typename A, typename B = A>
__device__ void Mma(SumOf<A> (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  SWIZZLE_EACH_OPERAND_TYPE(SWIZZLE_MMA)
}

// The same where `a` is what is left of a sparse operand of twice the depth, and `metadata` says where; those of lanes
// whose t is 0 or 1 count (of bytes, all).
template <typename A, typename B = A>
__device__ void SparseMma(SumOf<A> (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[4], uint32_t metadata) {
  SWIZZLE_EACH_OPERAND_TYPE(SWIZZLE_SPARSE_MMA)
}
#undef SWIZZLE_MMA
#undef SWIZZLE_SPARSE_MMA

// Four 8x8 matrices of 16 bits: lane l names row l % 8 of matrix l / 8.
__device__ inline void LoadMatrices(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// The same, each transposed.
__device__ inline void LoadTransposed(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

// An 8x8 matrix of 16 bits: (g, 2t), (g, 2t + 1) become (2t, g), (2t + 1, g).
__device__ inline uint32_t TransposeInWarp(uint32_t pair) {
  uint32_t result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

// The same of 32 bits, as two matrices of 16.
__device__ inline void TransposeInWarp(float& x, float& y) {
  const uint32_t low = TransposeInWarp(__byte_perm(__float_as_uint(x), __float_as_uint(y), 0x5410));
  const uint32_t high = TransposeInWarp(__byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632));
  x = __uint_as_float(__byte_perm(low, high, 0x5410));
  y = __uint_as_float(__byte_perm(low, high, 0x7632));
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_MMA_CUH_
