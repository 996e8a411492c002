// Powers of two, of which softmax and GELU are made. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_POWERS_CUH_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_POWERS_CUH_

namespace swizzle::cuda {

inline constexpr float kLog2E = 1.44269504f;

__device__ inline float PowerOfTwo(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_POWERS_CUH_
