#include "kernels/backend/point_functions.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

template <typename T>
T OfOne(PointOp op, T x) {
  return PointOf<T, 1>(op, 0.25f, 0.5f, {x});
}
template <typename T>
T OfTwo(PointOp op, T x, T y) {
  return PointOf<T, 2>(op, 0.0f, 0.0f, {x, y});
}

TEST(PointFunctionsTest, OperandsKeepTheirOrder) {
  EXPECT_EQ(OfTwo(PointOp::kSub, 5.0f, 3.0f), 2.0f);
  EXPECT_EQ(OfTwo(PointOp::kDiv, int64_t{7}, int64_t{2}), 3);
  EXPECT_EQ(OfTwo(PointOp::kPow, 2.0f, 3.0f), 8.0f);
  EXPECT_EQ(OfTwo(PointOp::kPRelu, -2.0f, 3.0f), -6.0f);
  EXPECT_EQ(OfTwo(PointOp::kGreater, int64_t{5}, int64_t{3}), 1);
  EXPECT_EQ(OfTwo(PointOp::kLessOrEqual, 5.0f, 3.0f), 0.0f);
  EXPECT_EQ((PointOf<float, 3>(PointOp::kWhere, 0.0f, 0.0f, {1.0f, 2.0f, 3.0f})), 2.0f);
  EXPECT_EQ((PointOf<int64_t, 3>(PointOp::kWhere, 0.0f, 0.0f, {0, 2, 3})), 3);
}

TEST(PointFunctionsTest, AttributesAreThoseOfTheOperator) {
  EXPECT_EQ(OfOne(PointOp::kLeakyRelu, -2.0f), -0.5f);
  EXPECT_EQ(OfOne(PointOp::kHardSigmoid, 1.0f), 0.75f);
  EXPECT_EQ(OfOne(PointOp::kClip, 0.0f), 0.25f);
  EXPECT_EQ(OfOne(PointOp::kClip, 2.0f), 0.5f);
}

TEST(PointFunctionsTest, WholeNumbersKeepWhatOnlyRealOnesBecome) {
  EXPECT_EQ(OfOne(PointOp::kAbs, int64_t{-5}), 5);
  EXPECT_EQ(OfOne(PointOp::kNot, int64_t{0}), 1);
  EXPECT_EQ(OfOne(PointOp::kExp, int64_t{5}), 5);
  EXPECT_EQ(OfOne(PointOp::kClip, int64_t{5}), 5);
}

TEST(PointFunctionsTest, ElementsAreReadAndWrittenInAnyOfTheirTypes) {
  const int32_t whole[] = {1, -2};
  const float real[] = {1.5f, -2.5f};
  EXPECT_EQ(PointAt<float>(whole, DType::kInt32, 1), -2.0f);
  EXPECT_EQ(PointAt<int64_t>(real, DType::kFloat32, 1), -2);
  uint8_t byte[] = {7, 7};
  PutPoint(-2.5f, byte, DType::kBool, 0);
  PutPoint(int64_t{300}, byte, DType::kUint8, 1);
  EXPECT_EQ(byte[0], 1);
  EXPECT_EQ(byte[1], 44);
}

}  // namespace
}  // namespace swizzle
