// What CUDA kernels of any element type share: the types, packs of neighbours that one access moves, and division by
// numbers that only the host knows. Arithmetic is in fp32 whatever the element.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_ELEMENTS_CUH_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_ELEMENTS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/backend/kernel_args.h"
#include "kernels/base/real_types.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle {

template <>
struct ElementTypes<__half> {
  static constexpr std::array kTypes = {DType::kFloat16};
};
template <>
struct ElementTypes<__nv_bfloat16> {
  static constexpr std::array kTypes = {DType::kBFloat16};
};

}  // namespace swizzle

namespace swizzle::cuda {

template <DType kDType>
struct ElementOf;
template <>
struct ElementOf<DType::kFloat32> {
  using Type = float;
};
template <>
struct ElementOf<DType::kFloat16> {
  using Type = __half;
};
template <>
struct ElementOf<DType::kBFloat16> {
  using Type = __nv_bfloat16;
};
template <DType kDType>
using Element = typename ElementOf<kDType>::Type;

__host__ __device__ inline float ToFloat(float value) { return value; }
__host__ __device__ inline float ToFloat(__half value) { return __half2float(value); }
__host__ __device__ inline float ToFloat(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__host__ __device__ T FromFloat(float value) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(value);
  } else {
    static_assert(std::is_same_v<T, __nv_bfloat16>);
    return __float2bfloat16_rn(value);
  }
}

// kCount neighbours, moved at once.
template <typename T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];
};

// kCount neighbours as floats; `from` is aligned to a pack.
template <int kCount, typename T>
__device__ void LoadPack(const T* from, float (&values)[kCount]) {
  const auto pack = *reinterpret_cast<const Pack<T, kCount>*>(from);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = ToFloat(pack.values[i]);
}

template <int kCount, typename T>
__device__ void StorePack(const float (&values)[kCount], T* to) {
  Pack<T, kCount> pack;
#pragma unroll
  for (int i = 0; i < kCount; ++i) pack.values[i] = FromFloat<T>(values[i]);
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

// Division of 0 <= n < 2^31 by a number known on the host (Granlund and Montgomery, "Division by invariant integers
// using multiplication", PLDI 1994, figure 4.1).
class FastDivider {
 public:
  FastDivider() = default;
  explicit FastDivider(int64_t divisor) : divisor_(static_cast<uint32_t>(divisor)) {
    while (shift_ < 32 && (uint64_t{1} << shift_) < divisor_) ++shift_;
    const uint64_t power = uint64_t{1} << shift_;
    factor_ = static_cast<uint32_t>((uint64_t{1} << 32) * (power - divisor_) / divisor_ + 1);
  }
  __device__ uint32_t Quotient(uint32_t n) const { return (__umulhi(n, factor_) + n) >> shift_; }
  // Returns n mod the divisor, and leaves the quotient in n.
  __device__ uint32_t Split(uint32_t& n) const {
    const uint32_t quotient = Quotient(n);
    const uint32_t rest = n - quotient * divisor_;
    n = quotient;
    return rest;
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t factor_ = 1;
  uint32_t shift_ = 0;
};

// Whether every element of both buffers has an index that FastDivider takes.
inline bool CountsFit(const Problem& problem) {
  constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 16);  // threads beyond the last item count on
  return LayoutElements(problem.input, problem.from.layout) < kMost &&
         LayoutElements(problem.output, problem.to.layout) < kMost;
}

// The sum, or the largest, over kLanes neighbouring lanes of a warp, in all of them.
template <int kLanes = 32>
__device__ float SumOfLanes(float value) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}
template <int kLanes = 32>
__device__ float MaxOfLanes(float value) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_ELEMENTS_CUH_
