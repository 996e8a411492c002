#include "kernels/operator/print.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

TEST(PrintTest, NamesFunctionsByWhatTheyCompute) {
  EXPECT_EQ(ReportName({Op::kDepthwiseConv, Window()}), "DepthwiseConv");
  EXPECT_EQ(ReportName({Op::kFunction, Function{FunctionKind::kHardSwish}}), "HardSwish");
}

TEST(PrintTest, ShowsEveryAttribute) {
  EXPECT_EQ(AttributesText({}), "");
  EXPECT_EQ(AttributesText(Window{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, true}),
            " window 1x2 stride 3x4 dilation 9x10 pad 5,6,7,8 counted");
  EXPECT_EQ(AttributesText(Function{FunctionKind::kLeakyRelu, 0.25f, 0}), " LeakyRelu alpha 0.25 beta 0");
  EXPECT_EQ(AttributesText(Lookup{true, 2}), " by position from 2");
  EXPECT_EQ(AttributesText(Attention{.heads = 2, .scale = 0.5f, .packed = true}), " heads 2 scale 0.5 packed");
  EXPECT_EQ(AttributesText(Attention{2, 0.5f, 30, 99}), " heads 2 scale 0.5 pattern of 30 tokens and 99 nonzeros");
  EXPECT_EQ(AttributesText(Attention{.heads = 6, .group_size = 3}), " heads 6 in groups of 3 scale 1");
  EXPECT_EQ(AttributesText(Normalisation{0.5f}), " epsilon 0.5");
  EXPECT_EQ(AttributesText(Normalisation{0.5f, false}), " root mean square epsilon 0.5");
  EXPECT_EQ(AttributesText(TokenChoice{-1}), " token -1");
  EXPECT_EQ(AttributesText(ConcatParts{2, false, {16, 3}}), " channels of 16+3");
  EXPECT_EQ(AttributesText(ConcatParts{1, true, {49}}), " planes of 49");
  EXPECT_EQ(AttributesText(ChannelRange{5}), " channels from 5");
  EXPECT_EQ(AttributesText(Resampling{.linear = true}), " linear half_pixel");
  EXPECT_EQ(AttributesText(Resampling{false, Coordinates::kAsymmetric, Nearest::kFloor, 2.0f, 0.5f}),
            " nearest floor asymmetric by 2x0.5");
  EXPECT_EQ(AttributesText(SpaceBlock{2, true}), " blocks of 2x2 places first");
}

}  // namespace
}  // namespace swizzle
