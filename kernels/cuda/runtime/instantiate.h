// Explicit instantiations of kernels that are templates of a layout and an element type.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_INSTANTIATE_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_INSTANTIATE_H_

#define SWIZZLE_INSTANTIATE_HALF_TYPES(function, layout)                       \
  template void function<layout, DType::kFloat16>(const KernelArgs&, Stream&); \
  template void function<layout, DType::kBFloat16>(const KernelArgs&, Stream&)
#define SWIZZLE_INSTANTIATE_TYPES(function, layout)                            \
  template void function<layout, DType::kFloat32>(const KernelArgs&, Stream&); \
  SWIZZLE_INSTANTIATE_HALF_TYPES(function, layout)

// In kRows and kNhwc.
#define SWIZZLE_INSTANTIATE(function)                 \
  SWIZZLE_INSTANTIATE_TYPES(function, Layout::kRows); \
  SWIZZLE_INSTANTIATE_TYPES(function, Layout::kNhwc)

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_INSTANTIATE_H_
