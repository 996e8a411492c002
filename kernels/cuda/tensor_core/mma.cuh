// What attention on tensor cores asks of a multiprocessor: matrix instructions of one warp, transposes between lanes
// and asynchronous copies. Device code.
//
// Lane l of a warp is (g, t) = (l / 4, l % 4). Of a product of 16 by 8, a lane holds c = {(g, 2t), (g, 2t + 1),
// (g + 8, 2t), (g + 8, 2t + 1)} (PTX ISA, "Matrix fragments for mma.m16n8k16" and k8).
//
// FP32 goes as three FP16 products, of each operand's upper 11 bits and of what they leave (Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance",
// 2022): the product of both rests, 2^-22 of the whole, is left out. Operands are scaled by powers of two to fit: what
// is lost of a small number is 2^-39 of the largest.
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_MMA_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_MMA_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace swizzle::cuda {

__device__ inline uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
// Turing has none of these. The kernels that use them compile for it, so that one build serves all devices, and are not
// launched there.
__device__ inline void CopyAsyncPart(uint32_t, const void*, int) { __trap(); }
__device__ inline void CopyAsync(uint32_t, const void*, bool) { __trap(); }
__device__ inline void CommitCopies() { __trap(); }
template <int kLeft>
__device__ inline void WaitForCopies() {
  __trap();
}
__device__ inline void MmaHalf(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t) { __trap(); }
__device__ inline void MmaBfloat16(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t) { __trap(); }
__device__ inline void MmaTf32(float (&)[4], const uint32_t (&)[4], uint32_t, uint32_t) { __trap(); }
__device__ inline uint32_t RoundToTf32(float) { return 0; }
#else
// 16 bytes to shared memory, of which the first `bytes` are read and the others zero.
__device__ inline void CopyAsyncPart(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
// 16 bytes to shared memory; zeros if not `real`, and nothing is read.
__device__ inline void CopyAsync(uint32_t to, const void* from, bool real) { CopyAsyncPart(to, from, real ? 16 : 0); }
__device__ inline void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ inline void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

__device__ inline void MmaHalf(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void MmaBfloat16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Of depth 8, the operands being TF32: a lane holds a = {(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)} and
// b = {(t, g), (t + 4, g)}.
__device__ inline void MmaTf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The nearest TF32 number, ties away from zero.
__device__ inline uint32_t RoundToTf32(float x) {
  uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
  return result;
}
#endif

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

__device__ inline uint32_t PackHalves(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline uint32_t PackBfloat16s(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline float PowerOfTwo(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// FP32 as two FP16 numbers, x = upper + rest: 22 bits, or to 2^-25.
__device__ inline float RestOf(float x) { return x - __half2float(__float2half_rn(x)); }

// The power of two that brings the largest number to 2^14, and its inverse.
struct Fit {
  float factor, inverse;
};
__device__ inline Fit FitOf(uint32_t largest) {
  const int exponent = max(static_cast<int>(largest >> 23), 27);
  return {__int_as_float((268 - exponent) << 23), __int_as_float((exponent - 14) << 23)};
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_MMA_CUH_
