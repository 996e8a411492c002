// What slides windows over the channels of bytes in kNhwc: rows depthwise_nhwc_dense_u8_<isa> and
// max_pool_nhwc_u8_vnni.
//
// A task is a row of outputs, 64 channels wide, with AVX2 16. No bytes are gathered: a window's columns are vectors of
// channels. Depthwise sums may end in a function with VNNI. An average counts either what padding adds or has no
// padding; the largest of a window keeps scale and zero point.
#ifndef SWIZZLE_KERNELS_CPU_INT8_NHWC_WINDOWS_H_
#define SWIZZLE_KERNELS_CPU_INT8_NHWC_WINDOWS_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

bool AcceptsNhwcDepthwise(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareNhwcDepthwise(const Weight& weight, const Problem& problem);
void NhwcDepthwise(const KernelArgs& args, Stream& stream);
// The same with AVX2.
bool AcceptsNhwcPairDepthwise(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareNhwcPairDepthwise(const Weight& weight, const Problem& problem);
void NhwcPairDepthwise(const KernelArgs& args, Stream& stream);

bool AcceptsNhwcMaxPool(const Problem& problem);
void NhwcMaxPool(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_NHWC_WINDOWS_H_
