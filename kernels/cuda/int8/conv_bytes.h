// Convolutions and linear layers of bytes on a GPU. Bytes become bytes, or real numbers: bias, clamp and residual, and
// where the output is real a function.
//
// Rows conv_rows_sr_bcrs_u8[_<real type>]_<way>_sm80 are of sparse weights (spmm_bytes.h); columns of a window are
// first gathered in the workspace (byte_columns.h). conv_nhwc_dense_u8[_<real type>]_cublaslt are of dense ones with
// one tap (dense_bytes.cu); dense_conv_bytes.h has any window.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_CONV_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_CONV_BYTES_H_

#include <memory>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/int8/spmm_bytes.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cuda {

// As BytePanels take them.
std::vector<std::vector<WholeEntry>> WholeRowsOf(const ByteWeight& weight);

// Any sparse weight goes, in panels of eight rows; what rows share no columns gain little.
template <ByteWay kWay>
bool AcceptsConvBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvBytes(const Weight& weight, const Problem& problem);
size_t ConvBytesWorkspaceBytes(const Problem& problem);
template <ByteWay kWay>
void RunConvBytes(const KernelArgs& args, Stream& stream);

bool AcceptsDenseBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseBytes(const Weight& weight, const Problem& problem);
size_t DenseBytesWorkspaceBytes(const Problem& problem);
void RunDenseBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_CONV_BYTES_H_
