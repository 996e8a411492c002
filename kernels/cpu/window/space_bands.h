// How channels that become blocks of positions are cut into bands of input rows. An immutable value, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_SPACE_BANDS_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_SPACE_BANDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/window/window_tiles.h"

namespace swizzle::cpu {

// All in floats unless named otherwise.
struct SpaceBands {
  explicit SpaceBands(const Problem& problem)
      : block(problem.space_block().block),
        width(problem.input.width),
        rows(std::clamp<int64_t>(kBandFloats / (width * block * block), 1, problem.input.height)),
        bands(CeilDiv(problem.input.height, rows)),
        from_floats(RoundUp(rows * width, kWidestVector) + kWidestVector),
        to_floats(RoundUp(rows * width * block * block, kWidestVector) + kWidestVector) {}

  int64_t places() const { return block * block; }
  int64_t from_runs() const { return MaxRuns(rows * width); }
  // Of the workspace, for one thread: a scratch plane for each place, one for the output, the runs of both.
  size_t SlotBytes() const {
    const auto floats = static_cast<size_t>(places() * from_floats + to_floats) * sizeof(float);
    const int64_t runs = from_runs() + MaxRuns(rows * width * places());
    return RoundUp(floats + static_cast<size_t>(runs) * sizeof(Run), kBufferAlignment);
  }

  static constexpr int64_t kWidestVector = 16;
  static constexpr int64_t kBandFloats = 4096;  // of the output: with its input it stays in a first cache
  const int64_t block, width;                   // of the input
  const int64_t rows;                           // of the input, in a band; the last of an image may have fewer
  const int64_t bands;                          // of an image
  const int64_t from_floats, to_floats;         // of a scratch plane, and what vectors write beyond
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_SPACE_BANDS_H_
