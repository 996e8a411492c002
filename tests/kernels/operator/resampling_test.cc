#include "kernels/operator/resampling.h"

#include <gtest/gtest.h>

#include <vector>

namespace swizzle {
namespace {

std::vector<double> Sources(Coordinates coordinates, const ResampledAxis& axis) {
  std::vector<double> sources;
  for (int64_t i = 0; i < axis.to; ++i) sources.push_back(SourceOf(coordinates, axis, i));
  return sources;
}

std::vector<int> Taken(Nearest nearest, const ResampledAxis& axis) {
  const Resampling how{.coordinates = Coordinates::kHalfPixel, .nearest = nearest};
  std::vector<int> taken;
  for (int64_t i = 0; i < axis.to; ++i) taken.push_back(TapsOf(how, axis, i).first);
  return taken;
}

TEST(ResamplingTest, TakesTheScaleThatTheModelGivesOrTheQuotient) {
  EXPECT_EQ(AxisOf(4, 9, 2.4f).scale, static_cast<double>(2.4f));
  EXPECT_EQ(AxisOf(4, 6, 0.0f).scale, 1.5);
}

TEST(ResamplingTest, FindsSourcesAsOnnxDefinesThem) {
  const ResampledAxis axis = AxisOf(2, 4, 0.0f);
  EXPECT_EQ(Sources(Coordinates::kHalfPixel, axis), (std::vector{-0.25, 0.25, 0.75, 1.25}));
  EXPECT_EQ(Sources(Coordinates::kPytorchHalfPixel, axis), (std::vector{-0.25, 0.25, 0.75, 1.25}));
  EXPECT_EQ(Sources(Coordinates::kAsymmetric, axis), (std::vector{0.0, 0.5, 1.0, 1.5}));
  EXPECT_EQ(Sources(Coordinates::kAlignCorners, AxisOf(3, 5, 0.0f)), (std::vector{0.0, 0.5, 1.0, 1.5, 2.0}));
}

TEST(ResamplingTest, AxesOfOnePositionBeginAtTheFirst) {
  EXPECT_EQ(Sources(Coordinates::kPytorchHalfPixel, AxisOf(4, 1, 0.0f)), std::vector{0.0});
  EXPECT_EQ(Sources(Coordinates::kAlignCorners, AxisOf(4, 1, 0.0f)), std::vector{0.0});
  EXPECT_EQ(Sources(Coordinates::kHalfPixel, AxisOf(4, 1, 0.0f)), std::vector{1.5});
}

TEST(ResamplingTest, HalvesGoAsTheModeSays) {
  const ResampledAxis axis = AxisOf(6, 3, 0.0f);  // 0.5, 2.5, 4.5
  EXPECT_EQ(Taken(Nearest::kRoundPreferFloor, axis), (std::vector{0, 2, 4}));
  EXPECT_EQ(Taken(Nearest::kRoundPreferCeil, axis), (std::vector{1, 3, 5}));
  EXPECT_EQ(Taken(Nearest::kFloor, axis), (std::vector{0, 2, 4}));
  EXPECT_EQ(Taken(Nearest::kCeil, axis), (std::vector{1, 3, 5}));
}

// Single precision has no 0.7, but 7 of 10, and halves of what it makes of others.
TEST(ResamplingTest, LengthsAndHalvesAreThoseOfSinglePrecision) {
  EXPECT_EQ(ScaledLength(10, 0.7f), 7.0f);
  EXPECT_EQ(ScaledLength(5, 1.4f), 7.0f);
  EXPECT_EQ(ScaledLength(10, 0.75f), 7.0f);
  EXPECT_EQ(Taken(Nearest::kRoundPreferFloor, AxisOf(9, 6, 0.7f)), (std::vector{0, 2, 3, 4, 6, 7}));
}

TEST(ResamplingTest, MixesNeighboursAndStaysInside) {
  const Resampling how{.linear = true};
  const ResampledAxis axis = AxisOf(2, 4, 0.0f);
  const ResampledTaps first = TapsOf(how, axis, 0), second = TapsOf(how, axis, 1), last = TapsOf(how, axis, 3);
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(first.second, 0) << "-1 is outside";
  EXPECT_EQ(second.second, 1);
  EXPECT_EQ(second.weight, 0.25f);
  EXPECT_EQ(last.first, 1);
  EXPECT_EQ(last.second, 1) << "2 is outside";
}

}  // namespace
}  // namespace swizzle
