// Convolutions and linear layers with a sparse weight as a bitmap on tensor cores, row conv_rows_bitmap_f16_mma_sm80
// and the same in bf16: bitmap_product.h with dense X, other windows unfolded first, as in conv_csr.h. A candidate
// where whole columns of 64 neighbouring rows are zero, as block pruning leaves them: elsewhere it multiplies as much
// as a dense kernel does, by slower instructions.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CONV_BITMAP_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CONV_BITMAP_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// Row functions; FP16 and BF16. The workspace is ConvCsrWorkspaceBytes.
bool HoldsEmptyColumns(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvBitmap(const Weight& weight, const Problem& problem);
void RunConvBitmap(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CONV_BITMAP_H_
