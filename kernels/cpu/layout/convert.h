// Layout conversions, fp32: rows convert_<from>_<to>_f32_base, all six directions between kNchw, kPanels and
// kBlocked16.
//
// They copy runs and transpose blocks (transpose.h). Rows convert_<from>_<to>_bf16_base have kPanels in bfloat16, which
// is rounded or widened on the way; convert_panels_f32_bf16_base and convert_panels_bf16_f32_base do only that.
#ifndef SWIZZLE_KERNELS_CPU_LAYOUT_CONVERT_H_
#define SWIZZLE_KERNELS_CPU_LAYOUT_CONVERT_H_

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// The row applies no epilogue.
bool AcceptsConvert(const Problem& problem);

// The padding channels of a kBlocked16 output are set to zero; spare positions of kPanels are left alone.
void Convert(const KernelArgs& args, Stream& stream);

// kTranspose: row transpose_nchw_f32_base.
void TransposeNchw(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_LAYOUT_CONVERT_H_
