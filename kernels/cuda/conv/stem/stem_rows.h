// The rows of first layers with their max pooling in the kernel table.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_STEM_STEM_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_STEM_STEM_ROWS_H_

#include "kernels/backend/kernel_rows.h"
#include "kernels/cuda/conv/stem/conv_stem.h"

namespace swizzle::cuda::stem_rows {

// Rows conv_pool_nchw_<type of images>_<layout>_dense_<type>_mma_sm80.
template <DType kImages, Layout kLayout, DType... kTypes>
constexpr auto RowsOf() {
  constexpr RowText kStem =
      RowText("conv_pool_nchw_") + TypeTag(kImages) + "_" + RowText(LayoutName(kLayout)) + "_dense_";
  constexpr Kernel kCommon = {.accepts = AcceptsConvStem, .prepare = PrepareConvStem};
  return Join(std::array<Kernel, 1>{MakeRow<kStem + TypeTag(kTypes) + "_mma_sm80">(
      kCommon, {Op::kConv, Format::kDense, kTypes, Storage{Layout::kNchw, kImages}, Storage{kLayout, kTypes, true}},
      kSm80, &RunConvStem)}...);
}

constexpr auto All() {
  constexpr DType kF16 = DType::kFloat16, kBf16 = DType::kBFloat16;
  return Join(RowsOf<DType::kFloat32, Layout::kRows, kF16, kBf16>(),
              RowsOf<DType::kFloat32, Layout::kNhwc, kF16, kBf16>(),
              RowsOf<DType::kUint8, Layout::kRows, kF16, kBf16>(), RowsOf<DType::kUint8, Layout::kNhwc, kF16, kBf16>());
}

}  // namespace swizzle::cuda::stem_rows

#endif  // SWIZZLE_KERNELS_CUDA_CONV_STEM_STEM_ROWS_H_
