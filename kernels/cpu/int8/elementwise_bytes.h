// Bytes element by element, in kFullPanels: sums of two and clamps, with the scales that their operands have: rows
// add_u8_<isa> and activation_u8_<isa>.
#ifndef SWIZZLE_KERNELS_CPU_INT8_ELEMENTWISE_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_ELEMENTWISE_BYTES_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

bool AcceptsElementwiseBytes(const Problem& problem);

// kAdd, or kActivation where there is one input.
template <const ByteCells& kCells>
void AddBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_ELEMENTWISE_BYTES_H_
