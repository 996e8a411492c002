// Where a weight's features lie in panels.
#include "kernels/cpu/conv/feature_panels.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace swizzle::cpu {
namespace {

// Element (feature, input) is 1000 * feature + input + 1.
DenseMatrix Numbered(int64_t rows, int64_t cols) {
  DenseMatrix matrix{rows, cols, {}};
  for (int64_t f = 0; f < rows; ++f) {
    for (int64_t k = 0; k < cols; ++k) matrix.values.push_back(static_cast<float>(1000 * f + k + 1));
  }
  return matrix;
}

TEST(FeaturePanels, HaveTheFeaturesOfAnInputSideBySide) {
  constexpr int64_t kRows = 100, kCols = 7;  // seven units: panels of 48 and 64
  const FeaturePanels panels(Numbered(kRows, kCols), {});
  ASSERT_EQ(panels.grid().count(), 2);
  for (int64_t panel = 0; panel < 2; ++panel) {
    const int64_t first = panels.grid().Begin(panel), width = panels.grid().Width(panel);
    for (int64_t k = 0; k < kCols; ++k) {
      for (int64_t f = 0; f < width; ++f) {
        const float expected = first + f < kRows ? static_cast<float>(1000 * (first + f) + k + 1) : 0.0f;
        EXPECT_EQ(panels.weights(panel, k)[f], expected) << panel << ", " << k << ", " << f;
      }
    }
  }
}

TEST(FeaturePanels, FollowOneAnother) {
  const FeaturePanels panels(Numbered(130, 5), {});
  for (int64_t panel = 0; panel + 1 < panels.grid().count(); ++panel) {
    EXPECT_EQ(panels.weights(panel, 5), panels.weights(panel + 1, 0));
  }
}

TEST(FeaturePanels, BeginOnVectors) {
  const FeaturePanels panels(Numbered(33, 3), {});
  for (int64_t k = 0; k < 3; ++k) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(panels.weights(0, k)) % kBufferAlignment, 0u);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(panels.bias()) % kBufferAlignment, 0u);
}

TEST(FeaturePanels, HaveABiasForEverySpareFeature) {
  const std::vector<float> bias = {5, 6, 7};
  const FeaturePanels with(Numbered(3, 2), bias), without(Numbered(3, 2), {});
  for (int64_t f = 0; f < 16; ++f) {
    EXPECT_EQ(with.bias()[f], f < 3 ? bias[f] : 0.0f);
    EXPECT_EQ(without.bias()[f], 0.0f);
  }
  EXPECT_EQ(with.bytes(), 16u * 3 * sizeof(float));
}

}  // namespace
}  // namespace swizzle::cpu
