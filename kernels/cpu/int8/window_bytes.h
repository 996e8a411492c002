// What slides windows over the channels of an activation of bytes, in kFullPanels: depthwise convolution (row
// depthwise_dense_u8_<isa>), max and average pooling (max_pool_u8_<isa>, average_pool_u8_<isa>); and the average of
// whole planes into kNchw (global_pool_u8_<isa>), that of kNhwc, too (global_pool_nhwc_u8_base).
//
// Columns are gathered for some channels at a time, few enough for the first cache (window_lanes.h). An average counts
// either what padding adds or has no padding; the largest of a window keeps scale and zero point.
#ifndef SWIZZLE_KERNELS_CPU_INT8_WINDOW_BYTES_H_
#define SWIZZLE_KERNELS_CPU_INT8_WINDOW_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

bool AcceptsDepthwiseBytes(const Problem& problem);
bool AcceptsMaxPoolBytes(const Problem& problem);
bool AcceptsAveragePoolBytes(const Problem& problem);
bool AcceptsGlobalPoolBytes(const Problem& problem);
bool AcceptsNhwcGlobalPool(const Problem& problem);
size_t WindowBytesWorkspace(const Problem& problem);
size_t MaxPoolWorkspace(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseBytes(const Weight& weight, const Problem& problem);

template <const ByteCells& kCells>
void DepthwiseBytes(const KernelArgs& args, Stream& stream);
template <const ByteCells& kCells>
void MaxPoolBytes(const KernelArgs& args, Stream& stream);
// With VBMI: by max_rows.h where it fits.
void MaxPoolInBands(const KernelArgs& args, Stream& stream);
template <const ByteCells& kCells>
void AveragePoolBytes(const KernelArgs& args, Stream& stream);
template <const ByteCells& kCells>
void GlobalPoolBytes(const KernelArgs& args, Stream& stream);
void NhwcGlobalPool(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_WINDOW_BYTES_H_
