#include "server/model/reshaped_dims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace swizzle {
namespace {

using ::testing::ElementsAre;

TEST(DimsReshape, NeedsAsManyElementsAndOpenDimensions) {
  EXPECT_TRUE(DimsReshape({}, {1}));
  EXPECT_TRUE(DimsReshape({1}, {}));
  EXPECT_TRUE(DimsReshape({2, 6}, {3, 4}));
  EXPECT_TRUE(DimsReshape({-1, 8}, {2, -1, 4}));
  EXPECT_TRUE(DimsReshape({-1, 2, -1}, {2, -1, -1}));
  EXPECT_FALSE(DimsReshape({8}, {7}));
  EXPECT_FALSE(DimsReshape({-1}, {1}));
  EXPECT_FALSE(DimsReshape({-1}, {-1, -1}));
  EXPECT_FALSE(DimsReshape({std::numeric_limits<int64_t>::max(), 2}, {std::numeric_limits<int64_t>::max(), 2}));
}

TEST(Reshaped, OpenDimensionsKeepTheirOrder) {
  EXPECT_THAT(Reshaped({5, 1}, 1, {1}, {}), ElementsAre(5));
  EXPECT_THAT(Reshaped({5, 7, 8}, 1, {-1, 8}, {2, -1, 4}), ElementsAre(5, 2, 7, 4));
  EXPECT_THAT(Reshaped({7, 2, 9}, 0, {-1, 2, -1}, {2, -1, -1}), ElementsAre(2, 7, 9));
  EXPECT_THAT(Reshaped({-1, 8}, 0, {-1, 8}, {-1, 2, 4}), ElementsAre(-1, 2, 4)) << "of a specification";
}

}  // namespace
}  // namespace swizzle
