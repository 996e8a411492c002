#include "kernels/cpu/simd/transpose_bytes.h"

#include <gtest/gtest.h>

#include <vector>

namespace swizzle::cpu {
namespace {

TEST(TransposeBytesTest, RowsBecomeColumnsAndNothingElseIsWritten) {
  constexpr int64_t kFromStride = 19, kToStride = 70, kSize = kTransposedBytes;
  std::vector<uint8_t> from(kFromStride * kSize), to(kToStride * kSize, 0);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i % 251 + 1);
  TransposeBytes(from.data(), kFromStride, to.data(), kToStride);
  for (int64_t row = 0; row < kSize; ++row) {
    for (int64_t column = 0; column < kToStride; ++column) {
      ASSERT_EQ(to[row * kToStride + column], column < kSize ? from[column * kFromStride + row] : 0)
          << "row " << row << ", column " << column;
    }
  }
}

}  // namespace
}  // namespace swizzle::cpu
