#include "kernels/cuda/conv/bitmap/bitmap_encode.cuh"
#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// A warp takes 32 rows of X by 32 columns.
__global__ void __launch_bounds__(kThreads)
    Encode(const uint16_t* x, int rows, int64_t columns, int64_t stride, BitmapTarget to, int strips) {
  const int64_t piece = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  // Neighbouring warps take neighbouring columns, whose elements share lines.
  const auto strip = static_cast<int>(piece % strips), first_row = static_cast<int>(piece / strips) * kStripDepthUnit;
  if (first_row >= to.depth) return;
  const int64_t column = int64_t{strip} * kStripLanes + threadIdx.x % 32;
  const uint16_t* const from = x + first_row * stride + column;
  EncodeWords(to, strip, first_row, [&](int i) -> uint16_t {
    return column < columns && first_row + i < rows ? __ldg(from + i * stride) : 0;
  });
}

}  // namespace

void QueueEncode(const void* x, int64_t rows, int64_t columns, int64_t stride, BitmapActivations& to,
                 cudaStream_t queue) {
  const int64_t pieces = int64_t{to.strips()} * (to.depth() / kStripDepthUnit);
  if (pieces == 0) return;
  Encode<<<LaunchGrid(CeilDiv(pieces, kWarps)), kThreads, 0, queue>>>(
      static_cast<const uint16_t*>(x), static_cast<int>(rows), columns, stride,
      {to.words(), to.alive(), to.values(), to.depth()}, to.strips());
}

}  // namespace swizzle::cuda
