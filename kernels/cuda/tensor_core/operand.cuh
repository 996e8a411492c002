// What tensor cores multiply: types of operands and of sums, and how numbers are rounded to them. Device code.
//
// FP32 goes as three FP16 products, of each operand's upper 11 bits and of what they leave (Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance",
// 2022): the product of both rests, 2^-22 of the whole, is left out. Operands are scaled by powers of two to fit: what
// is lost of a small number is 2^-39 of the largest.
#ifndef SWIZZLE_KERNELS_CUDA_TENSOR_CORE_OPERAND_CUH_
#define SWIZZLE_KERNELS_CUDA_TENSOR_CORE_OPERAND_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace swizzle::cuda {

// FP32 of which 10 bits of mantissa count. The other types are __half, __nv_bfloat16, int8_t and uint8_t; of the last
// two both operands of a product need not be the same.
struct Tf32 {
  uint32_t bits;
};

template <typename A>
using SumOf = std::conditional_t<std::is_integral_v<A>, int32_t, float>;

// Every instruction takes 32 bytes of a row of the left operand. A sparse one stands for twice as many: of each four
// places (of TF32, two) half are there, and metadata says which.
template <typename A>
inline constexpr int kProductDepth = 32 / sizeof(A);

// The PTX of a product for operands A and B: DO(depth, depth of a sparse one, sum, a, b, the sum's constraint, kind),
// and then what else is given.
#define SWIZZLE_EACH_OPERAND_TYPE(DO, ...)                                                      \
  if constexpr (std::is_same_v<A, __half>) {                                                    \
    static_assert(std::is_same_v<B, A>);                                                        \
    DO("16", "32", "f32", "f16", "f16", "+f", HALF, __VA_ARGS__);                               \
  } else if constexpr (std::is_same_v<A, __nv_bfloat16>) {                                      \
    static_assert(std::is_same_v<B, A>);                                                        \
    DO("16", "32", "f32", "bf16", "bf16", "+f", HALF, __VA_ARGS__);                             \
  } else if constexpr (std::is_same_v<A, Tf32>) {                                               \
    static_assert(std::is_same_v<B, A>);                                                        \
    DO("8", "16", "f32", "tf32", "tf32", "+f", TF32, __VA_ARGS__);                              \
  } else if constexpr (std::is_same_v<A, int8_t> && std::is_same_v<B, int8_t>) {                \
    DO("32", "64", "s32", "s8", "s8", "+r", INTEGER, __VA_ARGS__);                              \
  } else if constexpr (std::is_same_v<A, int8_t> && std::is_same_v<B, uint8_t>) {               \
    DO("32", "64", "s32", "s8", "u8", "+r", INTEGER, __VA_ARGS__);                              \
  } else if constexpr (std::is_same_v<A, uint8_t> && std::is_same_v<B, int8_t>) {               \
    DO("32", "64", "s32", "u8", "s8", "+r", INTEGER, __VA_ARGS__);                              \
  } else {                                                                                      \
    static_assert(std::is_same_v<A, uint8_t> && std::is_same_v<B, uint8_t>, "no such operand"); \
    DO("32", "64", "s32", "u8", "u8", "+r", INTEGER, __VA_ARGS__);                              \
  }

__device__ inline uint32_t PackHalves(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

__device__ inline uint32_t PackBfloat16s(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Of __half or __nv_bfloat16.
template <typename T>
__device__ uint32_t PackPair(float x, float y) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  if constexpr (std::is_same_v<T, __half>) return PackHalves(x, y);
  return PackBfloat16s(x, y);
}

template <typename T>
__device__ float2 UnpackPair(uint32_t bits) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  if constexpr (std::is_same_v<T, __half>) return __half22float2(*reinterpret_cast<const __half2*>(&bits));
  return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xFFFF0000u)};
}

// The nearest TF32 number, ties away from zero.
__device__ inline uint32_t RoundToTf32(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();  // see mma.cuh
#endif
  uint32_t result = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
#endif
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

#endif  // SWIZZLE_KERNELS_CUDA_TENSOR_CORE_OPERAND_CUH_
