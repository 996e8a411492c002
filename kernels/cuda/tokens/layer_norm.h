// Layer normalisation over channels on a GPU: rows layer_norm_rows_dense_ and layer_norm_nhwc_dense_.
//
// The corrected two-pass algorithm (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983,
// section 2), so that large means cost no places. In kNhwc a token of up to 1024 channels stays in the registers of a
// warp, in kRows in half precision in those of a cluster's blocks, which join what each found of its channels; else the
// later passes come from near memory.
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_LAYER_NORM_H_
#define SWIZZLE_KERNELS_CUDA_TOKENS_LAYER_NORM_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// One with a residual is that of a product (conv/conv_shfl_bw_norm.h).
bool AcceptsLayerNorm(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareLayerNorm(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void LayerNorm(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_LAYER_NORM_H_
