// Dense convolution and depthwise convolution through oneDNN, fp32, in its blocked layout: rows conv_dense_f32_onednn
// (kBlocked16), conv_stem_dense_f32_onednn (kNchw to kBlocked16, few input channels), depthwise_dense_f32_onednn and
// conv_grouped_dense_f32_onednn, for weights whose nonzeros lie in groups of channels, wherever those came from.
//
// The stream's threads share the images, and the output channels of those images that do not share evenly. The rows
// need AVX-512, for which this layout is made.
#ifndef SWIZZLE_KERNELS_CPU_CONV_ONEDNN_CONV_H_
#define SWIZZLE_KERNELS_CPU_CONV_ONEDNN_CONV_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// The clamp must leave the zeros of padding channels alone, and oneDNN must have generated code for the layer: its
// reference loops, which it falls back to, take seconds.
bool AcceptsOnednnConv(const Problem& problem);
bool AcceptsOnednnStem(const Problem& problem);  // at most 4 input channels
bool AcceptsOnednnDepthwise(const Problem& problem);
bool AcceptsOnednnGrouped(const Problem& problem);
// Whether there are at least two groups of whole blocks of 16 channels, and oneDNN needs no workspace for them.
bool HoldsOnednnGroups(const Weight& weight, const Problem& problem);

// `problem.threads` is the number that the layer will run on.
// Of each of the four: with the same weights.
StatusOr<SharedWeight> OnednnConvForPlane(const SharedWeight& form, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnConv(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnStem(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnDepthwise(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnGrouped(const Weight& weight, const Problem& problem);

size_t OnednnConvWorkspaceBytes(const Problem& problem);
size_t OnednnStemWorkspaceBytes(const Problem& problem);
size_t OnednnDepthwiseWorkspaceBytes(const Problem& problem);

// For the weights of all four.
void RunOnednnConv(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_ONEDNN_CONV_H_
