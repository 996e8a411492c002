// Real activations on a GPU as bytes, each position by a scale and a zero point of its own, for layers whose input has
// none that is known beforehand (whole_numbers/position_weight.h). The bytes are the CPU's; a NaN makes its position's
// steps NaN.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_QUANTISE_POSITIONS_H_
#define SWIZZLE_KERNELS_CUDA_INT8_QUANTISE_POSITIONS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Where the bytes lie in a workspace, and what they stand for: of each position {scale, scale * zero_point}.
struct QuantisedPositions {
  uint8_t* bytes;
  float2* steps;
};

// kNhwc: a line of `line` bytes a position, a multiple of 16, what lies behind the channels being zero.
// is_signed: the bytes less 128, as signed ones.
struct PositionLines {
  int64_t positions, channels, line;
  explicit PositionLines(const Problem& problem);
  size_t bytes() const;  // of the workspace
  QuantisedPositions In(std::byte* workspace) const;
};
void QueueQuantisedLines(const KernelArgs& args, const PositionLines& lines, bool is_signed,
                         const QuantisedPositions& to, Stream& stream);

// kRows: a row of `stride` bytes a channel; steps of as many positions.
struct PositionRows {
  int64_t channels, stride;
  explicit PositionRows(const Problem& problem);
  size_t bytes() const;  // of the workspace
  QuantisedPositions In(std::byte* workspace) const;
};
void QueueQuantisedRows(const KernelArgs& args, const PositionRows& rows, const QuantisedPositions& to, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_QUANTISE_POSITIONS_H_
