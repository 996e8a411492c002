// Sparse linear layers of few requests, fp32, on plain [batch, features] matrices: row linear_bitmap_f32_avx512 (kNchw,
// planes of one position). Weights stay packed as kernels/format/bitmap.h has them, and are read once for up to eight
// requests: VEXPANDPS puts a column's nonzeros of 16 rows where their bits say, and one multiply-add with an input
// serves all of them. So sums of neighbouring outputs stand in a vector, where kernels over panels have positions, of
// which there is one.
//
// Two expansions a column and 16 rows each bound it, about 5 clocks of a Zen 4 core, whatever the zeros. It wins for a
// few requests at 50 to 80 % (figures: kernels/cpu/PERFORMANCE.md, "Bitmaps").
#ifndef SWIZZLE_KERNELS_CPU_CONV_LINEAR_BITMAP_H_
#define SWIZZLE_KERNELS_CPU_CONV_LINEAR_BITMAP_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// Accepts what the dense row does (onednn_linear.h).
StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearBitmap(const Weight& weight, const Problem& problem);
void RunLinearBitmap(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_LINEAR_BITMAP_H_
