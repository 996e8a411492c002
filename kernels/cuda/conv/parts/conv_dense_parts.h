// Dense convolutions and linear layers in FP32 by products of halves through cuBLASLt, in kNhwc: three products of FP16
// parts (tensor_core/operand.cuh) as one of three times the depth, of X split by position_parts.h and W split once. One
// more pass undoes the scales and does all that follows the sum. Windows are unfolded in blocks, as in
// conv_dense_cublaslt.h.
//
// Sums are tensor cores', which cut them off where FP32 units round them: for plans whose precision allows that.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_DENSE_PARTS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_DENSE_PARTS_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// Row functions.
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvNhwcParts(const Weight& weight, const Problem& problem);
size_t ConvNhwcPartsWorkspaceBytes(const Problem& problem);
void ConvNhwcParts(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_DENSE_PARTS_H_
