// Dense convolutions and linear layers through cuBLASLt, in any element type; fp32 in full precision, or
// (kTf32) rounded to TF32.
//
// From kNhwc a pointwise layer is one product, Y[positions, M] = X[positions, K] * W^T, with bias, residual and ReLU
// done inside it; other clamps, and functions, are one more pass. From kRows it is Y[M, positions] = W * X; the bias
// goes along rows, which cuBLASLt cannot do, so that one more pass does all that follows the sum. Other windows
// multiply columns that are first gathered into the workspace (im2col.h), in blocks that stay in the second cache.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_CUBLASLT_H_
#define SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_CUBLASLT_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvNhwcCublas(const Weight& weight, const Problem& problem);
size_t ConvNhwcCublasWorkspaceBytes(const Problem& problem);
template <bool kTf32>
void ConvNhwcCublas(const KernelArgs& args, Stream& stream);

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvRowsCublas(const Weight& weight, const Problem& problem);
size_t ConvRowsCublasWorkspaceBytes(const Problem& problem);
template <bool kTf32>
void ConvRowsCublas(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_CUBLASLT_H_
