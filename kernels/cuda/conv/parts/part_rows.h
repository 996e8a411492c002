// The rows of products of FP16 parts in the kernel table: FP32, for plans whose precision allows them.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_PARTS_PART_ROWS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_PARTS_PART_ROWS_H_

#include "kernels/backend/kernel_rows.h"
#include "kernels/cuda/conv/csr/conv_csr_wgmma.h"
#include "kernels/cuda/conv/parts/conv_csr_parts.h"
#include "kernels/cuda/conv/parts/conv_dense_parts.h"
#include "kernels/cuda/conv/parts/conv_row_parts.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"

namespace swizzle::cuda::part_rows {

inline constexpr auto kDtype = DType::kFloat32;
inline bool AcceptsAll(const Problem&) { return true; }

// Row <stem>_f16x3_<target>, of convolutions from and to a layout.
template <RowText kStem, RowText kTarget>
constexpr std::array<Kernel, 1> RowOf(Format weights, Layout layout, uint32_t features, const Kernel& common,
                                      RunFunctionPointer run) {
  return {MakeRow<kStem + "_f16x3_" + kTarget>(Computing(Numerics::kSplitFactors, common),
                                               KeyOf({Op::kConv, weights, layout, layout}, kDtype, kDtype), features,
                                               run)};
}

// Tiles of kWidth columns in kRows.
template <RowText kStem, RowText kText, auto kRunWidth>
constexpr auto TilesOf(Format weights, const Kernel& common) {
  return RowOf<kStem, RowText("wgmma") + kText + "_sm90a">(weights, Layout::kRows, kSm90a, common, kRunWidth);
}

template <auto kPrepare, auto kHolds = nullptr>
constexpr Kernel kInGroups = {.accepts = AcceptsConvRowParts,
                              .prepare = kPrepare,
                              .workspace_bytes = ConvRowPartsWorkspaceBytes,
                              .holds = kHolds};

template <RowText kText, int kWidth>
constexpr auto GroupsOf() {
  return Join(
      TilesOf<"conv_rows_dense", kText, &RunConvRowParts<kWidth>>(Format::kDense, kInGroups<PrepareConvRowParts>),
      TilesOf<"conv_rows_shfl_bw", kText, &RunConvRowParts<kWidth>>(Format::kShflBw,
                                                                    kInGroups<PrepareConvGroupParts, HoldsRowGroups>),
      TilesOf<"conv_rows_hb_ell", kText, &RunConvRowParts<kWidth>>(Format::kHbEll,
                                                                   kInGroups<PrepareConvRowParts, HoldsMixedBlocks>));
}

// Sparse weights in groups, and dense ones.
constexpr auto All() {
  constexpr Kernel kByPositions = {
      .accepts = AcceptsAll, .prepare = PrepareConvNhwcParts, .workspace_bytes = ConvNhwcPartsWorkspaceBytes};
  return Join(GroupsOf<"128", 128>(), GroupsOf<"64", 64>(), GroupsOf<"256", 256>(),
              RowOf<"conv_nhwc_dense", "cublaslt">(Format::kDense, Layout::kNhwc, kAnySm, kByPositions, ConvNhwcParts));
}

// Other sparse ones.
constexpr auto AllOfCsr() {
  constexpr Kernel kCommon = {
      .accepts = AcceptsConvRowParts, .prepare = PrepareConvCsrWgmma, .workspace_bytes = ConvRowPartsWorkspaceBytes};
  return Join(TilesOf<"conv_rows_csr", "128", &RunConvCsrParts<128>>(Format::kCsr, kCommon),
              TilesOf<"conv_rows_csr", "192", &RunConvCsrParts<192>>(Format::kCsr, kCommon),
              TilesOf<"conv_rows_csr", "64", &RunConvCsrParts<64>>(Format::kCsr, kCommon));
}

}  // namespace swizzle::cuda::part_rows

#endif  // SWIZZLE_KERNELS_CUDA_CONV_PARTS_PART_ROWS_H_
