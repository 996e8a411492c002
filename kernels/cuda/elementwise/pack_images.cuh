// What brings images into kBatched, from layouts in which a channel of an image lies in one piece: kNchw and kRows.
// Device code.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_PACK_IMAGES_CUH_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_PACK_IMAGES_CUH_

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {

// In elements: of the input from a channel or an image to the next, of the output from a channel or a position.
struct PackedImages {
  int64_t from_channel, from_image, to_channel, to_position;
  int32_t images, channels;
  uint32_t plane;
  FastDivider packs;  // of kBatchUnit images
};

// A thread has kCount positions of a channel of a pack of images, which it reads from one image after the other:
// neighbouring threads have the packs of one position, then the next positions. Images that round the batch up repeat
// the last one. `change` gives each channel a function of the input's elements.
template <int kCount, int kThreads, typename From, typename To, typename Change>
__global__ void __launch_bounds__(kThreads)
    PackImages(const From* from, To* to, const __grid_constant__ PackedImages lies, const Change change) {
  LetNextStart();
  uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  const uint32_t first = lies.packs.Split(item) * kBatchUnit, position = item * kCount;
  if (position >= lies.plane) return;
  for (int channel = blockIdx.y; channel < lies.channels; channel += gridDim.y) {
    const auto of_channel = change.Of(channel);
    const From* const in = from + channel * lies.from_channel + position;
    float values[kCount][kBatchUnit];
#pragma unroll
    for (int b = 0; b < kBatchUnit; ++b) {
      const int64_t image = min(static_cast<int32_t>(first) + b, lies.images - 1);
      const auto pack = *reinterpret_cast<const Pack<From, kCount>*>(in + image * lies.from_image);
#pragma unroll
      for (int i = 0; i < kCount; ++i) values[i][b] = of_channel(pack.values[i]);
    }
    To* const out = to + channel * lies.to_channel + position * lies.to_position + first;
#pragma unroll
    for (int i = 0; i < kCount; ++i) StorePack<kBatchUnit>(values[i], out + i * lies.to_position);
  }
}

// A change that only converts.
struct Unchanged {
  __device__ const Unchanged& Of(int) const { return *this; }
  template <typename From>
  __device__ float operator()(From value) const {
    return ToFloat(value);
  }
};

// Of the input's strides.
template <typename From, typename To, typename Change>
void QueuePackImages(const From* from, To* to, const Extent& extent, int64_t from_channel, int64_t from_image,
                     const Change& change, cudaStream_t queue) {
  constexpr int kThreads = 128, kCount = 4;
  if (extent.batch == 0) return;
  const int64_t packs = CeilDiv(extent.batch, kBatchUnit);
  const PackedImages lies = {from_channel,
                             from_image,
                             RowStride(BatchedPositions(extent)),
                             packs * kBatchUnit,
                             static_cast<int32_t>(extent.batch),
                             static_cast<int32_t>(extent.channels),
                             static_cast<uint32_t>(extent.plane()),
                             FastDivider(packs)};
  const auto launch = [&](auto* kernel, int count) {
    const LaunchGrid grid(CeilDiv(extent.plane() / count * packs, int64_t{kThreads}), extent.channels);
    kernel<<<grid, kThreads, 0, queue>>>(from, to, lies, change);
  };
  extent.plane() % kCount == 0 ? launch(PackImages<kCount, kThreads, From, To, Change>, kCount)
                               : launch(PackImages<1, kThreads, From, To, Change>, 1);
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_PACK_IMAGES_CUH_
