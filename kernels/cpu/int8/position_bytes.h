// Linear layers and pointwise convolutions of real activations in kPanels that multiply bytes: rows
// linear_{csr,vector,block}_position_u8_<isa> of sparse weights, whose quads are those of conv_{csr,vector,block}_u8
// (conv_bytes.h), with VBMI also by lanes (lane_weight.h), and linear_dense_position_u8_<isa> of dense ones. Bias,
// residual, clamp and function.
//
// They take weights of whole numbers whose input has no scale that is known beforehand
// (whole_numbers/position_weight.h).
#ifndef SWIZZLE_KERNELS_CPU_INT8_POSITION_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_POSITION_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"
#include "kernels/whole_numbers/position_weight.h"

namespace swizzle::cpu {

bool AcceptsPositionBytes(const Problem& problem);
size_t PositionBytesWorkspace(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionQuads(const Weight& weight, const Problem& problem);
// Whether rows share enough columns, or nonzeros stand in enough blocks (quad_costs.h).
bool HoldsPositionVectors(const Weight& weight, const Problem& problem);
bool HoldsPositionBlockQuads(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionVectors(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionBlockQuads(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionBlocks(const Weight& weight, const Problem& problem);

size_t PositionLanesWorkspace(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionLanes(const Weight& weight, const Problem& problem);
void PositionLanes(const KernelArgs& args, Stream& stream);

template <const ByteCells& kCells>
void PositionQuads(const KernelArgs& args, Stream& stream);
template <const ByteCells& kCells>
void PositionBlocks(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_POSITION_BYTES_H_
