// Sparse convolution of bytes over kNhwc, by lanes (lane_weight.h): row conv_nhwc_csr_u8_vbmi. Any window, stride,
// padding and dilation; bias, clamp and a residual.
//
// A task is up to 16 neighbouring positions. Their columns are copied tap by tap, each unit of 32 channels to the two
// windows that it is half of, so that every window is one aligned vector; a pointwise layer of 64 channels reads its
// input as it lies. Taps outside the plane read the input's zero point.
#ifndef SWIZZLE_KERNELS_CPU_INT8_LANE_CONV_H_
#define SWIZZLE_KERNELS_CPU_INT8_LANE_CONV_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

bool AcceptsLaneConv(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareLaneConv(const Weight& weight, const Problem& problem);
size_t LaneConvWorkspaceBytes(const Problem& problem);
void LaneConv(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_LANE_CONV_H_
