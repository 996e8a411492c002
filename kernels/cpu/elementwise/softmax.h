// Softmax over channels, fp32: rows softmax_panels_f32_<isa> and softmax_nchw_f32_<isa>, which work in place, and
// softmax_panels_nchw_f32_<isa>, which spares a conversion. The largest value is taken off first, so no exponential
// overflows; each is good to 1e-6 relative.
//
// kPanels and kNchw planes are vectorised across positions; kNchw without a plane ([batch, channels]) along channels.
#ifndef SWIZZLE_KERNELS_CPU_ELEMENTWISE_SOFTMAX_H_
#define SWIZZLE_KERNELS_CPU_ELEMENTWISE_SOFTMAX_H_

#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// The row applies no epilogue.
bool AcceptsSoftmax(const Problem& problem);
// From panels to kNchw: without a plane.
bool AcceptsSoftmaxToRows(const Problem& problem);

// One row of `length` > 0 neighbours, with this machine's widest instructions. `result` may be `row`.
void SoftmaxRow(const float* row, int64_t length, float* result);

// clang-format off
SWIZZLE_DECLARE_PER_TARGET(
    void Softmax(const KernelArgs& args, Stream& stream);
    void SoftmaxRow(const float* row, int64_t length, float* result);)
// clang-format on

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_ELEMENTWISE_SOFTMAX_H_
