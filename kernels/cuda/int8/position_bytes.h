// Linear layers and pointwise convolutions of real activations on a GPU that multiply bytes: models that are quantised
// dynamically. Each position is quantised by what is in it (quantise_positions.h), then products of bytes end in real
// numbers: bias, residual, clamp and function. In FP32 results are the CPU's, but for functions.
//
// Rows conv_nhwc_dense_position_u8_<type>_<tile>_sm90a and ..._cublaslt are of dense weights, and
// conv_rows_sr_bcrs_position_u8_<type>_<way>_sm80 of sparse ones.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_POSITION_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_POSITION_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/int8/dense_conv_bytes.h"
#include "kernels/cuda/int8/spmm_bytes.h"
#include "kernels/whole_numbers/position_weight.h"

namespace swizzle::cuda {

bool AcceptsPositionBytes(const Problem& problem);
size_t PositionLinesWorkspaceBytes(const Problem& problem);

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionTiles(const Weight& weight, const Problem& problem);
template <typename Shape>
void RunPositionTiles(const KernelArgs& args, Stream& stream);

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionLibrary(const Weight& weight, const Problem& problem);
size_t PositionLibraryWorkspaceBytes(const Problem& problem);
void RunPositionLibrary(const KernelArgs& args, Stream& stream);

template <ByteWay kWay>
bool AcceptsPositionPanels(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionPanels(const Weight& weight, const Problem& problem);
size_t PositionPanelsWorkspaceBytes(const Problem& problem);
template <ByteWay kWay>
void RunPositionPanels(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_POSITION_BYTES_H_
