// Layer normalisation over channels, of tokens or of planes' positions, fp32: rows layer_norm_<layout>_dense_f32_<isa>,
// kPanels (across positions) and kNchw (along the channels of each token), layer_norm_panels_dense_bf16_<isa>, and
// layer_norm_panels_dense_f32_u8_<isa>, whose results are bytes in kFullPanels.
//
// The corrected two-pass algorithm (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983,
// section 2): the second pass sums the differences from the rounded mean beside their squares, and takes what they
// leave off both the mean and the variance. Large means cost no places.
#ifndef SWIZZLE_KERNELS_CPU_TOKENS_LAYER_NORM_H_
#define SWIZZLE_KERNELS_CPU_TOKENS_LAYER_NORM_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// In kNchw: of tokens, or planes of one position, whose channels stand in a row.
// Of a layer's results alone; in kNchw those without a plane. To bytes: by a scale of theirs.
bool AcceptsLayerNorm(const Problem& problem);
bool AcceptsLayerNormOfRows(const Problem& problem);
bool AcceptsLayerNormToBytes(const Problem& problem);

StatusOr<std::unique_ptr<PackedWeight>> PrepareLayerNorm(const Weight& weight, const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void LayerNorm(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_TOKENS_LAYER_NORM_H_
