// Linear layers and 1x1 convolutions of bytes on a GPU: rows conv_rows_sr_bcrs_u8[_<real type>]_<way>_sm80 of sparse
// weights (spmm_bytes.h), and conv_nhwc_dense_u8[_<real type>]_cublaslt of dense ones (dense_bytes.cu). Bytes become
// bytes, or real numbers: bias, clamp and residual, and where the output is real a function.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_CONV_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_CONV_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/int8/spmm_bytes.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cuda {

// Any sparse weight goes, in panels of eight rows; what rows share no columns gain little.
template <ByteWay kWay>
bool AcceptsConvBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvBytes(const Weight& weight, const Problem& problem);
template <ByteWay kWay>
void RunConvBytes(const KernelArgs& args, Stream& stream);

bool AcceptsDenseBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseBytes(const Weight& weight, const Problem& problem);
size_t DenseBytesWorkspaceBytes(const Problem& problem);
void RunDenseBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_CONV_BYTES_H_
