// How many blocks of a kernel a launch asks for, within what every device takes: 2^31 - 1 along x, 65,535 along y and
// z. Plain values, on the host; no CUDA is needed to make one.
//
// Along y and z there may be fewer blocks than a kernel has work for. So it goes on from its own block in steps of the
// grid, or its row of the kernel table accepts no more than kMostDown:
//
//   for (int row = blockIdx.y; row < rows; row += gridDim.y)
//
// Along x there are as many as asked for. That what lies in a device's memory would want more is not possible; if it
// did, the launch would fail, and the stream's next Status would say so.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_LAUNCH_GRID_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_LAUNCH_GRID_H_

#include <algorithm>
#include <cstdint>

#include "kernels/base/integers.h"

namespace swizzle::cuda {

struct LaunchGrid {
  static constexpr int64_t kMostAcross = (int64_t{1} << 31) - 1;  // x
  static constexpr int64_t kMostDown = 65535;                     // y, and z

  unsigned x = 1, y = 1, z = 1;

  explicit constexpr LaunchGrid(int64_t blocks_x, int64_t most_y = 1, int64_t most_z = 1)
      : x(static_cast<unsigned>(std::min(blocks_x, kMostAcross + 1))),
        y(static_cast<unsigned>(std::min(most_y, kMostDown))),
        z(static_cast<unsigned>(std::min(most_z, kMostDown))) {}

  // One thread an item, `threads` a block.
  static constexpr LaunchGrid OfThreads(int64_t items, int threads) { return LaunchGrid(CeilDiv(items, threads)); }

  // The same for kernels that go on from their first item in steps of the grid along x too: no more blocks than
  // fill a device of so many multiprocessors a few times.
  static constexpr LaunchGrid OfLoops(int64_t items, int threads, int multiprocessors) {
    constexpr int64_t kBlocksEach = 16;
    return LaunchGrid(std::min(CeilDiv(items, threads), kBlocksEach * multiprocessors));
  }

#ifdef __CUDACC__
  operator dim3() const { return dim3(x, y, z); }
#endif
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_LAUNCH_GRID_H_
