// Dense 3x3 convolution of stride 1 by Winograd's algorithm F(4x4, 3x3), fp32: rows conv_winograd_dense_f32_<isa>, in
// kBlocked16.
//
// An output tile of 4x4 positions takes 36 multiply-adds for each pair of channels instead of 144. The 6x6 input tile
// under it and the 3x3 weights are transformed to 36 numbers each, which are multiplied; the output tile is a transform
// of the sums over channels. Transforms are sums along rows and columns: a few operations a channel, so that layers of
// 16 channels gain, too.
//
// Tiles are taken in groups whose transforms fit the second cache. Products of a group are 36 products of matrices
// [tiles, channels] and [channels, 32 outputs]. Results differ from those of other kernels by some 1e-6 of their
// largest; an input that is infinite or NaN spoils the outputs of its whole tile.
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_WINOGRAD_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_WINOGRAD_H_

#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {

// No layers whose transformed weights, four times as many as before, would only be read out of memory.
bool AcceptsConvWinograd(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvWinograd(const Weight& weight, const Problem& problem);
size_t ConvWinogradWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void ConvWinograd(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_WINOGRAD_H_
