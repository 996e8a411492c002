// Convolution and linear layers of bytes, into kFullPanels of bytes or kPanels in FP32: rows
// conv_csr_u8_<isa> and conv_csr_u8_f32_<isa> of sparse weights, conv_dense_u8_<isa>, conv_dense_u8_f32_<isa> and, from
// kNchw, conv_nchw_dense_u8_<isa> of dense ones. Any window, stride, padding and dilation; bias, clamp and a residual.
//
// Sparse weights take a row's nonzeros four at a time from any columns (quad_weight.h): no structure is asked of them.
// A pointwise window reads the input as it lies; the columns of others are gathered byte by byte for one panel at a
// time (window_lanes.h), tap by tap, the channels of a tap one after another.
//
// Columns that are outside the plane hold the input's zero point.
#ifndef SWIZZLE_KERNELS_CPU_INT8_CONV_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_CONV_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

bool AcceptsConvBytes(const Problem& problem);
size_t QuadConvWorkspaceBytes(const Problem& problem);
size_t BlockConvWorkspaceBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareQuadConv(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockConv(const Weight& weight, const Problem& problem);

template <const ByteCells& kCells>
void QuadConv(const KernelArgs& args, Stream& stream);
template <const ByteCells& kCells>
void BlockConv(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_CONV_BYTES_H_
