// How tiles of sums end that lanes hold as tensor cores leave them. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_TILE_ENDING_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_TILE_ENDING_CUH_

#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/tensor_core/operand.cuh"

namespace swizzle::cuda {

// GELU alone: beside the other functions it would spill registers, and it ends most layers that end in one.
class GeluFunction {
 public:
  explicit GeluFunction(const Epilogue&) {}
  template <typename T, int kCount>
  __device__ void Apply(float (&values)[kCount]) const {
#pragma unroll
    for (float& value : values) value = FunctionOf<FunctionKind::kGelu, T>(value, 0, 0);
  }
};

// launch(ending) for an epilogue, with GELU apart.
template <typename Launch>
void WithTileEnding(const Epilogue& epilogue, const Launch& launch) {
  if (epilogue.function && epilogue.function->kind == FunctionKind::kGelu) {
    return launch(Ending<GeluFunction>(epilogue));
  }
  WithEnding(epilogue, launch);
}

// v[i] of lane t of each four becomes v[t] of lane i.
__device__ inline void TransposeInFours(uint32_t (&v)[4]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, t & 2 ? v[i] : v[i + 2], 2);
    if (t & 2)
      v[i] = other;
    else
      v[i + 2] = other;
  }
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, t & 1 ? v[i] : v[i + 1], 1);
    if (t & 1)
      v[i] = other;
    else
      v[i + 1] = other;
  }
}

// Ends and stores what lane t of each four has of a row's 32 columns: of four octets the sums 2t and 2t + 1, with their
// bias. Transposed, a lane has eight neighbours, octet t: of residual, which may be null, and Y those from `at` on.
// Those that are not real are neither read nor stored.
template <typename T, typename Function>
__device__ void EndFourOctets(const Ending<Function>& ending, bool clamps, const T* residual, T* y, int64_t at,
                              bool real, float (&sums)[8]) {
  uint32_t pairs[4];
  if (residual != nullptr) {
    const uint4 bits = real ? *reinterpret_cast<const uint4*>(residual + at) : uint4{};
    pairs[0] = bits.x, pairs[1] = bits.y, pairs[2] = bits.z, pairs[3] = bits.w;
    TransposeInFours(pairs);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 pair = UnpackPair<T>(pairs[j]);
      sums[2 * j] += pair.x;
      sums[2 * j + 1] += pair.y;
    }
  }
  if (clamps || !std::is_same_v<Function, NoFunction>) ending.template Apply<T>(sums);
#pragma unroll
  for (int j = 0; j < 4; ++j) pairs[j] = PackPair<T>(sums[2 * j], sums[2 * j + 1]);
  TransposeInFours(pairs);
  if (real) *reinterpret_cast<uint4*>(y + at) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_TILE_ENDING_CUH_
