// Activations that kernels which quantise each position make no error with.
#ifndef SWIZZLE_TESTS_KERNELS_POSITION_BYTES_H_
#define SWIZZLE_TESTS_KERNELS_POSITION_BYTES_H_

#include <cmath>
#include <random>

#include "kernels/base/layout.h"
#include "kernels/reference/reference.h"

namespace swizzle {

// What each position's bytes stand for exactly, whatever its zero point: their range is 255 steps of a power of two.
inline void RoundToPositionBytes(const Extent& extent, std::mt19937& random, reference::Values& values) {
  for (int64_t position = 0; position < extent.positions(); ++position) {
    const int64_t plane = extent.plane(), image = position / plane;
    const int zero_point = static_cast<int>(random() % 256);
    const float scale = std::ldexp(1.0f, -7 - static_cast<int>(random() % 3));
    for (int64_t c = 0; c < extent.channels; ++c) {
      const int byte = c == 0 ? 0 : c == 1 ? 255 : static_cast<int>(random() % 256);
      values[(image * extent.channels + c) * plane + position % plane] = scale * static_cast<float>(byte - zero_point);
    }
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_POSITION_BYTES_H_
