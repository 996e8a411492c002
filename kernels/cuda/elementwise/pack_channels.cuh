// What brings images of three channels from kNchw into kNhwc, as requests bring them: tiles of a transpose
// (convert.cu) would be three lines high, of the 32 that they have room for. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_PACK_CHANNELS_CUH_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_PACK_CHANNELS_CUH_

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {

inline constexpr int kPackedChannels = 3;

// A thread has kCount positions, which it reads from one channel after the other and writes as packs of kCount.
// `change` gives each channel a function of the input's elements.
template <int kCount, int kThreads, typename From, typename To, typename Change>
__global__ void __launch_bounds__(kThreads)
    PackChannels(const From* from, To* to, int images, int64_t plane, const Change change) {
  LetNextStart();
  WaitForResults();
  const int64_t position = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (position >= plane) return;
  for (int image = blockIdx.y; image < images; image += gridDim.y) {
    const int64_t begin = int64_t{image} * kPackedChannels * plane;
    float packs[kPackedChannels][kCount];
#pragma unroll
    for (int channel = 0; channel < kPackedChannels; ++channel) {
      const auto of_channel = change.Of(channel);
      const auto pack = *reinterpret_cast<const Pack<From, kCount>*>(from + begin + channel * plane + position);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int at = i * kPackedChannels + channel;
        packs[at / kCount][at % kCount] = of_channel(pack.values[i]);
      }
    }
    To* const out = to + begin + position * kPackedChannels;
#pragma unroll
    for (int i = 0; i < kPackedChannels; ++i) StorePack<kCount>(packs[i], out + i * kCount);
  }
}

// REQUIRES: extent has kPackedChannels.
template <typename From, typename To, typename Change>
void QueuePackChannels(const From* from, To* to, const Extent& extent, const Change& change, cudaStream_t queue) {
  constexpr int kThreads = 128, kCount = 4;
  if (extent.batch == 0) return;
  const auto launch = [&](auto* kernel, int count) {
    const LaunchGrid grid(CeilDiv(extent.plane(), int64_t{kThreads} * count), extent.batch);
    LaunchDependent(kernel, grid, kThreads, 0, queue, from, to, static_cast<int>(extent.batch), extent.plane(), change);
  };
  extent.plane() % kCount == 0 ? launch(PackChannels<kCount, kThreads, From, To, Change>, kCount)
                               : launch(PackChannels<1, kThreads, From, To, Change>, 1);
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_PACK_CHANNELS_CUH_
