// Linear layers of bytes in kNchw, [batch, channels] to [batch, channels], dense: rows linear_dense_u8_<isa> and, into
// FP32, linear_dense_u8_f32_<isa>. For few rows, such as a classifier's: kFullPanels would pad them to 64.
#ifndef SWIZZLE_KERNELS_CPU_INT8_LINEAR_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_LINEAR_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

bool AcceptsLinearBytes(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearBytes(const Weight& weight, const Problem& problem);

template <const ByteCells& kCells>
void LinearBytes(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_LINEAR_BYTES_H_
