// Dense convolutions and linear layers of bytes on a GPU, in kNhwc, of any window: rows
// conv_nhwc_dense_u8[_<real type>]_mma<positions>x<channels>_sm80 and ..._wgmma<positions>x<channels>_sm90a. Bytes
// become bytes, or real numbers: bias, clamp and residual, and where the output is real a function.
//
// An implicit product of positions [N, K] with weights [K, M], K being columns as byte_columns.h counts them: a block
// makes a tile of Y, its threads copy each next 64 or 128 columns of their positions and channels to a ring in shared
// memory (cp.async), and products of unsigned and signed bytes follow. A piece of 16 columns is of one tap, and comes
// from the plane, or is the zero point outside of it. Where channels are no multiple of 16, columns are gathered in the
// workspace first.
//
// Of 64 channels, column n of the eighth j of a product is channel n / 2 * 16 + 2 j + n % 2, so that a lane ends up
// with 16 neighbouring channels of a position. Weights are packed as products take them:
//   mma    by 64 channels and 64 columns, for lanes that read 8 times 16 bytes (mma.m16n8k32).
//   wgmma  by 64 channels and 128 columns, as they lie in shared memory, where the tensor core reads both operands.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_H_
#define SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// What products by wgmma are compiled for: tiles of so many positions and channels, stages of the ring that columns
// come through, and parts of K, which blocks of a cluster add up. Few stages leave room for more blocks, which suits
// short sums; parts of K suit few positions.
template <int kPositionCount, int kChannelCount, int kStageCount, int kPartCount = 1>
struct ByteTileShape {
  static constexpr int kPositions = kPositionCount, kChannels = kChannelCount;
  static constexpr int kStages = kStageCount, kSplit = kPartCount;
};
using ByteTile128x128 = ByteTileShape<128, 128, 3>;
using ByteTile128x64 = ByteTileShape<128, 64, 3>;
using ByteTile64x64 = ByteTileShape<64, 64, 4>;
using ByteTileShort = ByteTileShape<64, 64, 2>;
using ByteTileSplit = ByteTileShape<64, 64, 4, 4>;

bool AcceptsDenseConvBytes(const Problem& problem);
size_t DenseConvBytesWorkspaceBytes(const Problem& problem);

// Tiles of so many positions and channels.
StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseConvBytes(const Weight& weight, const Problem& problem);
template <int kPositions, int kChannels>
void RunDenseConvBytes(const KernelArgs& args, Stream& stream);

StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseConvBytesWgmma(const Weight& weight, const Problem& problem);
template <typename Shape>
void RunDenseConvBytesWgmma(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_H_
