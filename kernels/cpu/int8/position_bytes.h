// Linear layers and pointwise convolutions of real activations in kPanels that multiply bytes: rows
// linear_csr_position_u8_<isa> of sparse weights, with VBMI by lanes (lane_weight.h), and
// linear_dense_position_u8_<isa> of dense ones. Bias, residual, clamp and function.
//
// They take weights of whole numbers whose input has no scale that is known beforehand: models that are quantised
// dynamically. Each position is quantised by what is in it, one token by itself. Where a model says one scale for the
// whole tensor (ONNX's DynamicQuantizeLinear) that would depend on what else is in the batch, and be coarser: a token's
// range is at most the tensor's, so that each step is at most as long.
#ifndef SWIZZLE_KERNELS_CPU_INT8_POSITION_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_POSITION_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

bool AcceptsPositionBytes(const Problem& problem);
// Whether the weight is of signed bytes, and the input of no whole numbers.
bool HoldsPositionBytes(const Weight& weight, const Problem& problem);
size_t PositionBytesWorkspace(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PreparePositionQuads(const Weight& weight, const Problem& problem);
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
