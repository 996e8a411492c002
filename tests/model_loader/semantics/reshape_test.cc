#include "model_loader/semantics/reshape.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::kInvalid;

using Ints = std::vector<int64_t>;
using Axes = std::optional<Ints>;

TEST(ReshapeTest, CopiesAndInfersDimensions) {
  EXPECT_THAT(*ReshapedShape({2, 3, 4}, {6, 4}, false), ElementsAre(6, 4));
  EXPECT_THAT(*ReshapedShape({2, 3, 4}, {0, -1}, false), ElementsAre(2, 12));
  EXPECT_THAT(*ReshapedShape({2, 3, 4}, {-1}, false), ElementsAre(24));
  EXPECT_THAT(*ReshapedShape({1}, {}, false), ElementsAre());
  EXPECT_THAT(*ReshapedShape({0, 3}, {3, 0}, true), ElementsAre(3, 0));
  EXPECT_THAT(*ReshapedShape({0, 3}, {0, -1}, false), ElementsAre(0, 0));
}

TEST(ReshapeTest, RefusesOtherNumbersOfElements) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  const auto refused = IsError(kInvalid, "a value of shape [2,3] cannot become");
  for (const Shape& target :
       {Shape{5}, Shape{4, -1}, Shape{-1, -1}, Shape{-2, -3}, Shape{kHuge, kHuge}, Shape{2, 3, 0}, Shape{kHuge, -1}}) {
    EXPECT_THAT(ReshapedShape({2, 3}, target, false).status(), refused) << ShapeText(target);
  }
  EXPECT_THAT(ReshapedShape({2, 3}, {0, 3}, true).status(), refused) << "zeros that stand for themselves";
}

TEST(ReshapeTest, SqueezesOnesOrAxes) {
  const auto squeezed = [](const Shape& shape, const Axes& axes) {
    return SqueezedDimensions(shape, axes, [](int64_t dimension) { return dimension == 1; });
  };
  EXPECT_THAT(*squeezed({1, 2, 1}, std::nullopt), ElementsAre(2));
  EXPECT_THAT(*squeezed({1, 2, 1}, Axes(Ints{2})), ElementsAre(1, 2));
  EXPECT_THAT(*squeezed({1, 2, 1}, Axes(Ints{})), ElementsAre(1, 2, 1));
  EXPECT_THAT(squeezed({1, 2, 1}, Axes(Ints{0, 1})).status(), IsError(kInvalid, "dimension 1 is to be squeezed"));
}

TEST(ReshapeTest, UnsqueezedAxesAreThoseOfTheResult) {
  EXPECT_THAT(UnsqueezedDimensions(Shape{2, 3}, {0, 3}), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(UnsqueezedDimensions(Shape{}, {0, 1}), ElementsAre(1, 1));
}

}  // namespace
}  // namespace swizzle
