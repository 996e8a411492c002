// The rows of products with the layer norm behind them in the kernel table.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_NORM_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_NORM_ROWS_H_

#include "kernels/backend/kernel_rows.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_norm.h"

namespace swizzle::cuda::norm_rows {

// Rows layer_norm_rows_shfl_bw_<type>_<target>.
template <RowText kTarget, DType... kTypes>
constexpr auto RowsOf(RunFunctionPointer run) {
  constexpr RowShape kShape = {Op::kLayerNorm, Format::kShflBw, Layout::kRows, Layout::kRows};
  constexpr Kernel kCommon = {.accepts = AcceptsNormShflBw, .prepare = PrepareNormShflBw, .holds = HoldsRowGroups};
  return Join(std::array<Kernel, 1>{MakeRow<RowText("layer_norm_rows_shfl_bw_") + TypeTag(kTypes) + "_" + kTarget>(
      kCommon, KeyOf(kShape, kTypes, kTypes), kSm90a, run)}...);
}

constexpr auto All() {
  constexpr DType kF16 = DType::kFloat16, kBf16 = DType::kBFloat16;
  return Join(RowsOf<"wgmma64_sm90a", kF16, kBf16>(RunNormShflBw<64>),
              RowsOf<"wgmma128_sm90a", kF16, kBf16>(RunNormShflBw<128>),
              RowsOf<"mma_sm90", kF16, kBf16>(RunNormShflBwFew));
}

}  // namespace swizzle::cuda::norm_rows

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_NORM_ROWS_H_
