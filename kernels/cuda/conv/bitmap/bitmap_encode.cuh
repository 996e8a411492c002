// How a warp makes 32 words of a bitmap operand (bitmap_operand.h) of what its lanes see of 32 x 32 elements. Device
// code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_ENCODE_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_ENCODE_CUH_

#include <cstdint>

#include "kernels/cuda/conv/bitmap/bitmap_operand.h"

namespace swizzle::cuda {

struct BitmapTarget {
  BitmapWord* words;
  uint32_t* alive;
  uint16_t* values;
  int32_t depth;
};

// k from `depth` on, a multiple of 32, of a strip: element(i) is the bits of this lane's column at k = depth + i.
template <typename ElementAt>
__device__ void EncodeWords(const BitmapTarget& to, int64_t strip, int depth, const ElementAt& element) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  const int lane = threadIdx.x % kStripLanes;
  const int64_t at = strip * to.depth + depth;
  const auto begin = static_cast<uint32_t>(at * kStripLanes);
  uint16_t values[kStripDepthUnit];
#pragma unroll
  for (int i = 0; i < kStripDepthUnit; ++i) values[i] = element(i);  // all on their way before the first is looked at
  uint32_t first = begin, my_bits = 0, my_first = begin;
#pragma unroll
  for (int i = 0; i < kStripDepthUnit; ++i) {
    const bool holds = (values[i] & 0x7FFF) != 0;
    const uint32_t bits = __ballot_sync(kAll, holds);
    if (holds) to.values[first + __popc(bits & ((1u << lane) - 1))] = values[i];
    if (lane == i) my_bits = bits, my_first = first;
    first += (__popc(bits) + kValuesUnit - 1) / kValuesUnit * kValuesUnit;
  }
  to.words[at + lane] = {my_bits, my_first};
  const uint32_t alive = __ballot_sync(kAll, my_bits != 0);
  if (lane == 0) to.alive[at / 32] = alive;
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_BITMAP_BITMAP_ENCODE_CUH_
