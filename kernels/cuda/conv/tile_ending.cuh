// How tiles of sums end that lanes hold as tensor cores leave them. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_TILE_ENDING_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_TILE_ENDING_CUH_

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

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_TILE_ENDING_CUH_
