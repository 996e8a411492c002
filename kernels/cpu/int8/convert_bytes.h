// Real numbers become bytes and bytes real numbers, from one layout to another, and bytes change their layout: rows
// quantise_<from>_<to>_u8_<isa>, dequantise_<from>_<to>_u8_<isa> and move_<from>_<to>_u8_<isa>.
#ifndef SWIZZLE_KERNELS_CPU_INT8_CONVERT_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_CONVERT_BYTES_H_

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

// The layouts that hold bytes are kNchw, kFullPanels and kNhwc, real numbers kNchw, kPanels and kBlocked16.
bool AcceptsConvertBytes(const Problem& problem);
// kActivation, whose rows round_<from>_<to>_u8_<isa> clamp, too.
bool AcceptsRoundToBytes(const Problem& problem);

template <const ByteCells& kCells>
void ConvertBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_CONVERT_BYTES_H_
