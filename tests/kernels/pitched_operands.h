// Operands in kNhwc as some of the channels of wider ones, for tests of kernels that take a pitch.
#ifndef SWIZZLE_TESTS_KERNELS_PITCHED_OPERANDS_H_
#define SWIZZLE_TESTS_KERNELS_PITCHED_OPERANDS_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "kernels/base/storage.h"

namespace swizzle {

// Whether an operand's channels can stand within wider ones in kNhwc.
inline bool CanBePitched(const Extent& extent, Storage storage) {
  return storage.layout == Layout::kNhwc && extent.channels * ElementBytes(storage.dtype) % kPitchAlignment == 0;
}

// Of such an operand: a pack of other channels before its own, and two behind them.
inline int64_t PackOf(DType dtype) { return static_cast<int64_t>(kPitchAlignment / ElementBytes(dtype)); }
inline int64_t PitchOf(const Extent& extent, DType dtype) { return extent.channels + 3 * PackOf(dtype); }

inline std::vector<float> Widened(std::span<const float> values, const Extent& extent, DType dtype) {
  const int64_t pitch = PitchOf(extent, dtype);
  std::vector<float> wide(extent.positions() * pitch, std::numeric_limits<float>::quiet_NaN());
  for (int64_t i = 0; i < std::ssize(values); ++i) {
    wide[i / extent.channels * pitch + PackOf(dtype) + i % extent.channels] = values[i];
  }
  return wide;
}

// What Widened made wide; all else must be NaN as before.
inline std::vector<float> Narrowed(std::span<const float> wide, const Extent& extent, DType dtype) {
  const int64_t pitch = PitchOf(extent, dtype);
  std::vector<float> values;
  for (int64_t i = 0; i < std::ssize(wide); ++i) {
    const int64_t channel = i % pitch - PackOf(dtype);
    if (channel >= 0 && channel < extent.channels) {
      values.push_back(wide[i]);
    } else {
      EXPECT_TRUE(std::isnan(wide[i])) << "element " << i << " is another's";
    }
  }
  return values;
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_PITCHED_OPERANDS_H_
