#include "model_loader/semantics/affine.h"

#include <array>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

// What `op` with the constant 4 makes of 3.
float OfThree(const char* op, bool constant_first) {
  const ScaleAndShift channel = AsScaleAndShift(op, constant_first, 4.0f);
  return 3.0f * channel.scale + channel.shift;
}

TEST(AffineTest, ArithmeticIsScaleAndShift) {
  EXPECT_EQ(OfThree("Add", false), 7.0f);
  EXPECT_EQ(OfThree("Add", true), 7.0f);
  EXPECT_EQ(OfThree("Sub", false), -1.0f);
  EXPECT_EQ(OfThree("Sub", true), 1.0f);
  EXPECT_EQ(OfThree("Mul", false), 12.0f);
  EXPECT_EQ(OfThree("Div", false), 0.75f);
}

TEST(AffineTest, WeightsAreRows) {
  const std::array<float, 6> given = {1, 2, 3, 4, 5, 6};
  std::array<float, 6> weight = {};
  MakeLinearWeight(given, 3, 2, false, 1.0f, weight);
  EXPECT_THAT(weight, ElementsAre(1, 4, 2, 5, 3, 6));
  MakeLinearWeight(given, 3, 2, true, 2.0f, weight);
  EXPECT_THAT(weight, ElementsAre(2, 4, 6, 8, 10, 12));
}

}  // namespace
}  // namespace swizzle
