#include "kernels/base/quantisation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace swizzle {
namespace {

using ::testing::HasSubstr;

TEST(QuantisationTest, TakesOneScaleOrOneAChannel) {
  const Quantisation whole = {DType::kUint8, {0.5f}, {128}};
  EXPECT_TRUE(whole.Validate(7).ok());
  EXPECT_EQ(whole.Of(6), (Quantised{DType::kUint8, 0.5f, 128}));
  const Quantisation each = {DType::kInt8, {0.5f, 0.25f, 2.0f}, {}};
  EXPECT_TRUE(each.Validate(3).ok());
  EXPECT_FALSE(each.per_tensor());
  EXPECT_EQ(each.Of(1), (Quantised{DType::kInt8, 0.25f, 0}));
}

TEST(QuantisationTest, RefusesWhatStandsForNothing) {
  const auto message = [](const Quantisation& quantisation) { return std::string(quantisation.Validate(3).message()); };
  EXPECT_THAT(message({DType::kInt32, {1.0f}, {}}), HasSubstr("INT32"));
  EXPECT_THAT(message({DType::kInt8, {1.0f, 2.0f}, {}}), HasSubstr("2 scales"));
  EXPECT_THAT(message({DType::kInt8, {}, {}}), HasSubstr("0 scales"));
  for (const float scale :
       {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(message({DType::kInt8, {scale}, {}}), HasSubstr("above 0"));
  }
  EXPECT_THAT(message({DType::kInt8, {1.0f}, {0, 0}}), HasSubstr("2 zero points"));
  EXPECT_THAT(message({DType::kInt8, {1.0f}, {128}}), HasSubstr("zero point 128"));
  EXPECT_THAT(message({DType::kUint8, {1.0f}, {-1}}), HasSubstr("zero point -1"));
}

}  // namespace
}  // namespace swizzle
