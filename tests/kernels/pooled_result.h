// What rows make that store their output pooled, for tests of kernels.
#ifndef SWIZZLE_TESTS_KERNELS_POOLED_RESULT_H_
#define SWIZZLE_TESTS_KERNELS_POOLED_RESULT_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/base/storage.h"
#include "kernels/reference/reference.h"

namespace swizzle {

// What is stored in the place of an output that is `pooled`.
inline reference::Result Pooled(const reference::Result& whole, const Extent& extent) {
  const Extent pooled = PooledExtent(extent);
  reference::Result result;
  for (int64_t i = 0; i < pooled.positions() * pooled.channels; ++i) {
    const int64_t plane = i / pooled.plane(), y = i % pooled.plane() / pooled.width * 2, x = i % pooled.width * 2;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t row = std::max<int64_t>(y - 1, 0); row < std::min(y + 2, extent.height); ++row) {
      for (int64_t column = std::max<int64_t>(x - 1, 0); column < std::min(x + 2, extent.width); ++column) {
        largest = std::max<double>(largest, whole[plane * extent.plane() + row * extent.width + column]);
      }
    }
    result.push_back(largest);
  }
  return result;
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_POOLED_RESULT_H_
