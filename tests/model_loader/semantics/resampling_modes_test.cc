#include "model_loader/semantics/resampling_modes.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

TEST(ResamplingModesTest, FindsWhatHasTheName) {
  EXPECT_EQ(CoordinatesNamed("half_pixel"), Coordinates::kHalfPixel);
  EXPECT_EQ(CoordinatesNamed("asymmetric"), Coordinates::kAsymmetric);
  EXPECT_EQ(NearestNamed("ceil"), Nearest::kCeil);
}

TEST(ResamplingModesTest, FindsNothingElse) {
  EXPECT_EQ(CoordinatesNamed("tf_crop_and_resize"), std::nullopt);
  EXPECT_EQ(CoordinatesNamed("unknown"), std::nullopt);
  EXPECT_EQ(NearestNamed(""), std::nullopt);
}

}  // namespace
}  // namespace swizzle
