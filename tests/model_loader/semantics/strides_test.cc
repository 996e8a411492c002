#include "model_loader/semantics/strides.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::kInvalid;

TEST(StridesTest, DenseTensorsAreRowMajor) {
  EXPECT_THAT(DenseStrides({2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(DenseStrides({5}), ElementsAre(1));
  EXPECT_THAT(DenseStrides({}), ElementsAre());
  EXPECT_EQ(ProductOf({2, 3, 4}, 0, 3), 24);
  EXPECT_EQ(ProductOf({2, 3, 4}, 1, 2), 3);
  EXPECT_EQ(ProductOf({2, 3, 4}, 2, 2), 1);
}

TEST(StridesTest, BroadcastDimensionsStandStill) {
  EXPECT_THAT(BroadcastStrides({3, 1}, {2, 3, 4}), ElementsAre(0, 1, 0));
  EXPECT_THAT(BroadcastStrides({2, 3, 4}, {2, 3, 4}), ElementsAre(12, 4, 1));
  EXPECT_THAT(BroadcastStrides({}, {2, 3}), ElementsAre(0, 0));
}

StatusOr<Shape> Joined(const std::vector<Shape>& shapes) { return BroadcastShape(shapes); }

TEST(StridesTest, ShapesBroadcastFromTheEnd) {
  EXPECT_THAT(*Joined({{3, 1}, {2, 1, 4}}), ElementsAre(2, 3, 4));
  EXPECT_THAT(*Joined({{2, 1, 4}, {3, 1}}), ElementsAre(2, 3, 4));
  EXPECT_THAT(*Joined({{}, {1}, {5, 1}}), ElementsAre(5, 1));
  EXPECT_THAT(*Joined({{1}, {0}}), ElementsAre(0));
  EXPECT_THAT(*Joined({}), ElementsAre());
  EXPECT_THAT(*Joined({{-1, 4}, {1, 4}, {-1, 1}}), ElementsAre(-1, 4)) << "the free batch";
  EXPECT_THAT(Joined({{2}, {3}}).status(), IsError(kInvalid, "shapes [2] and [3] do not broadcast"));
  EXPECT_THAT(Joined({{-1}, {3}}).status(), IsError(kInvalid, "do not broadcast"));
  EXPECT_THAT(Joined({{1, 2}, {4, 1}, {3}}).status(), IsError(kInvalid, "shapes [4,2] and [3]"));
}

TEST(StridesTest, OldOperandsStandAtAnAxis) {
  EXPECT_THAT(*ShapeAtAxis({3}, 1, 4), ElementsAre(3, 1, 1));
  EXPECT_THAT(*ShapeAtAxis({3, 4}, 2, 4), ElementsAre(3, 4));
  EXPECT_THAT(*ShapeAtAxis({}, 3, 4), ElementsAre(1));
  EXPECT_THAT(ShapeAtAxis({3, 4}, 3, 4).status(), IsError(kInvalid, "[3,4] at axis 3"));
}

}  // namespace
}  // namespace swizzle
