// Convolutions and linear layers with a sparse weight as a bitmap on tensor cores, row conv_rows_bitmap_f16_mma_sm80
// and the same in bf16: bitmap_product.h with dense X, other windows unfolded first, as in conv_csr.h. A candidate
// where whole columns of 64 neighbouring rows are zero, as block pruning leaves them: elsewhere it multiplies as much
// as a dense kernel does, by slower instructions.
//
// Row conv_rows_bitmap_f16_both_sm80 and the same in bf16 skip zeros of the input, too: it is encoded to bitmaps, other
// windows than 1x1 are unfolded as bitmaps (bitmap_planes.h), and what holds something on both sides is multiplied. It
// reads the same form of the weight. How long it takes goes by the zeros that requests bring, so it is a candidate only
// where calibration data told of them, and half of the input's runs of 32 are empty. Images go through in groups that
// fit the workspace, which is bounded unless one image takes more.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_BITMAP_CONV_BITMAP_H_
#define SWIZZLE_KERNELS_CUDA_CONV_BITMAP_CONV_BITMAP_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// Row functions; FP16 and BF16. The workspace with dense X is ConvCsrWorkspaceBytes.
bool HoldsEmptyColumns(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvBitmap(const Weight& weight, const Problem& problem);
void RunConvBitmap(const KernelArgs& args, Stream& stream);

// Whether the operand that one image makes is small enough for indices of 32 bits.
bool FitsBitmaps(const Problem& problem);
bool AcceptsConvBitmaps(const Problem& problem);
size_t ConvBitmapsWorkspaceBytes(const Problem& problem);
void RunConvBitmaps(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_BITMAP_CONV_BITMAP_H_
