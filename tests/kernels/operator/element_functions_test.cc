#include "kernels/operator/element_functions.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace swizzle::elementwise {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

TEST(ElementFunctionsTest, WholeNumbersWrap) {
  EXPECT_EQ(kAbs(kLeast), kLeast);
  EXPECT_EQ(kAbs(int64_t{-3}), 3);
  EXPECT_EQ(kNeg(kLeast), kLeast);
  EXPECT_EQ(kNeg(uint64_t{1}), ~uint64_t{0});
  EXPECT_EQ(kAdd(kMost, int64_t{1}), kLeast);
  EXPECT_EQ(kSub(kLeast, int64_t{1}), kMost);
  EXPECT_EQ(kMul(kMost, int64_t{2}), -2);
  EXPECT_EQ(kDiv(kLeast, int64_t{-1}), kLeast);
  EXPECT_EQ(kDiv(int64_t{7}, int64_t{-2}), -3);
  EXPECT_EQ(kDiv(int64_t{7}, int64_t{0}), 0);
  EXPECT_EQ(kDiv(uint64_t{7}, uint64_t{0}), 0u);
  EXPECT_EQ(kDiv(7.0f, 0.0f), kInfinity);
}

TEST(ElementFunctionsTest, KeepWhatIsNotANumber) {
  EXPECT_TRUE(std::isnan(kRelu(kNan)));
  EXPECT_TRUE(std::isnan(kMax(kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(kMax(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(kMin(kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(kMin(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(kClip(kNan, 0, 1)));
  EXPECT_TRUE(kIsNaN(kNan));
  EXPECT_FALSE(kIsNaN(int64_t{0}));
}

TEST(ElementFunctionsTest, ClipTakesTheUpperBoundFirst) {
  EXPECT_EQ(kClip(-1.0f, 0, 6), 0.0f);
  EXPECT_EQ(kClip(7.0f, 0, 6), 6.0f);
  EXPECT_EQ(kClip(2.5f, 0, 6), 2.5f);
  EXPECT_EQ(kClip(1.0f, 3, 2), 2.0f);
  EXPECT_EQ(kClip(kMost, -kInfinity, kInfinity), kMost);
}

TEST(ElementFunctionsTest, Logic) {
  EXPECT_TRUE(kAnd(2, 3));
  EXPECT_FALSE(kAnd(2, 0));
  EXPECT_TRUE(kOr(0, 3));
  EXPECT_FALSE(kXor(2, 3));
  EXPECT_TRUE(kNot(0));
}

TEST(ElementFunctionsTest, ActivationsAreThoseOfOnnx) {
  EXPECT_EQ(kLeakyRelu(-2.0f, 0.25f), -0.5f);
  EXPECT_EQ(kLeakyRelu(2.0f, 0.25f), 2.0f);
  EXPECT_EQ(kPRelu(-2.0f, 3.0f), -6.0f);
  EXPECT_EQ(kPRelu(int64_t{-2}, int64_t{3}), -6);
  EXPECT_NEAR(kElu(-1.0, 2.0f), 2 * (std::exp(-1.0) - 1), 1e-12);
  EXPECT_EQ(kHardSigmoid(1.0f, 0.25f, 0.5f), 0.75f);
  EXPECT_EQ(kHardSigmoid(9.0f, 0.25f, 0.5f), 1.0f);
  EXPECT_EQ(kHardSigmoid(-9.0f, 0.25f, 0.5f), 0.0f);
  EXPECT_TRUE(std::isnan(kHardSigmoid(kNan, 0.25f, 0.5f)));
  EXPECT_NEAR(kSoftplus(0.0), std::log(2.0), 1e-12);
  EXPECT_EQ(kSoftplus(1000.0f), 1000.0f);
  EXPECT_NEAR(kSigmoid(2.0), 0.8807970779778823, 1e-12);
  EXPECT_NEAR(kSilu(2.0), 2 * 0.8807970779778823, 1e-12);
  EXPECT_NEAR(kGelu(1.0), 0.8413447460685429, 1e-12);
  EXPECT_NEAR(kGeluTanh(1.0), 0.8411919906082768, 1e-12);
  EXPECT_EQ(kPow(-3.0f, 2.0f), 9.0f);
  EXPECT_EQ(kPow(2.0f, -1.0f), 0.5f);
}

}  // namespace
}  // namespace swizzle::elementwise
