// Bytes as elements of kernels that only move them.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_BYTE_ELEMENT_CUH_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_BYTE_ELEMENT_CUH_

#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda {

template <>
struct ElementOf<DType::kUint8> {
  using Type = uint8_t;
};

__host__ __device__ inline float ToFloat(uint8_t value) { return value; }
template <>
__host__ __device__ inline uint8_t FromFloat<uint8_t>(float value) {
  return static_cast<uint8_t>(value);
}

}  // namespace swizzle::cuda

// Explicit instantiations of a kernel that is a template of layout and type.
#define SWIZZLE_INSTANTIATE_OF_BYTES(function)                                      \
  template void function<Layout::kRows, DType::kUint8>(const KernelArgs&, Stream&); \
  template void function<Layout::kNhwc, DType::kUint8>(const KernelArgs&, Stream&)

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_BYTE_ELEMENT_CUH_
