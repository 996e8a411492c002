// Dense convolution, fp32, into kPanels: rows conv_dense_f32_<isa> from kPanels and conv_nchw_dense_f32_<isa> from
// kNchw, any window; likewise conv_dense_bf16_<isa> and conv_nchw_dense_bf16_<isa> (see conv_csr.h). They spare
// dense layers among sparse ones, and the stem, the conversions to a library's layout.
//
// A tile of 6 rows by up to 64 positions (with AVX2 by 16) keeps its sums in registers over a block of the columns. A
// column of a tile is then four loads of activations and six of weights for 24 multiply-adds, so that the FMA units are
// the bound; columns are asked for ahead out of the second cache, which loses less than blocks that stay in the first
// one and have to carry sums from block to block.
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_DENSE_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_DENSE_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvDense(const Weight& weight, const Problem& problem);
size_t ConvDenseWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void ConvDense(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_DENSE_H_
