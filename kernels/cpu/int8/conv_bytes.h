// Convolution and linear layers of bytes, into kFullPanels of bytes or kPanels in FP32: rows
// conv_{csr,vector,block}_u8_<isa> and conv_{csr,vector,block}_u8_f32_<isa> of sparse weights, conv_dense_u8_<isa>,
// conv_dense_u8_f32_<isa> and, from kNchw, conv_nchw_dense_u8_<isa> of dense ones. Any window, stride, padding and
// dilation; bias, clamp and a residual, and a function where the output is real. In place of the last,
// conv_stem_dense_u8_vbmi takes up to four channels under windows of three columns or more, up to stride 4
// (stem_columns.h).
//
// Sparse weights take nonzeros four at a time (quad_weight.h): conv_csr a row's from any columns, with no structure
// asked of them, conv_vector those of 2 or 4 rows that share columns (SR-BCRS), conv_block 1x4 blocks along input
// channels, of one row or of 2 or 4 that share them.
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
bool AcceptsStemConv(const Problem& problem);
size_t QuadConvWorkspaceBytes(const Problem& problem);
size_t BlockQuadConvWorkspaceBytes(const Problem& problem);
size_t BlockConvWorkspaceBytes(const Problem& problem);  // of interleaved columns
StatusOr<std::unique_ptr<PackedWeight>> PrepareQuadConv(const Weight& weight, const Problem& problem);
// For targets with VNNI, where the output is of bytes: in parts that stay in the first cache.
StatusOr<std::unique_ptr<PackedWeight>> PrepareQuadConvInParts(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockQuadConvInParts(const Weight& weight, const Problem& problem);
// For targets without VNNI: in pairs.
StatusOr<std::unique_ptr<PackedWeight>> PreparePairedQuadConv(const Weight& weight, const Problem& problem);
// Whether rows share enough columns, or nonzeros stand in enough blocks, to be worth computing so: elsewhere the rows
// of conv_csr are faster, and need not be raced. HoldsWideBytes(), of blocks HoldsBytes(), is part of it.
bool HoldsVectorQuads(const Weight& weight, const Problem& problem);
bool HoldsBlockQuads(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareVectorQuadConv(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockQuadConv(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockConv(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareStemConv(const Weight& weight, const Problem& problem);

template <const ByteCells& kCells>
void QuadConv(const KernelArgs& args, Stream& stream);
template <const ByteCells& kCells>
void BlockConv(const KernelArgs& args, Stream& stream);
void StemConv(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_CONV_BYTES_H_
