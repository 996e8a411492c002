#include "model_loader/plan/choose/layer_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace swizzle {
namespace {

Candidate In(Layout layout, DType dtype, bool rounds_less) {
  const Storage storage = {layout, dtype};
  return {.input = storage, .output = storage, .rounds_less = rounds_less};
}

TEST(LayerRowsTest, OnlyPlansWhosePrecisionAllowsItRoundFactors) {
  const Kernel exact, tf32 = RoundingToTf32({}), halves = SplittingToHalves({}), bytes = RoundingToBytes({});
  for (const Precision precision : kPrecisions) {
    EXPECT_TRUE(MayRoundAs(precision, exact));
    EXPECT_EQ(MayRoundAs(precision, tf32), precision == Precision::kTf32);
    EXPECT_EQ(MayRoundAs(precision, halves), precision == Precision::kFloat16x3 || precision == Precision::kTf32);
    EXPECT_EQ(MayRoundAs(precision, bytes), precision == Precision::kInt8);
  }
}

TEST(LayerRowsTest, RowsThatRoundLessGoWhereOthersAreStoredAlike) {
  std::vector<Candidate> candidates = {In(Layout::kNhwc, DType::kFloat16, true),
                                       In(Layout::kNhwc, DType::kFloat16, false),
                                       In(Layout::kRows, DType::kFloat16, true),   // no other has its layout
                                       In(Layout::kNhwc, DType::kFloat32, true)};  // nor its type
  SettleForDevice(Precision::kInt8, {}, candidates);
  ASSERT_EQ(candidates.size(), 3u);
  EXPECT_FALSE(candidates[0].rounds_less);
  EXPECT_EQ(candidates[1].input.layout, Layout::kRows);
  EXPECT_EQ(candidates[2].input.dtype, DType::kFloat32);
}

TEST(LayerRowsTest, RowsStayThatNoOtherRoundsMoreThan) {
  std::vector<Candidate> candidates = {In(Layout::kNhwc, DType::kFloat16, false),
                                       In(Layout::kNhwc, DType::kFloat16, false)};
  SettleForDevice(Precision::kInt8, {}, candidates);
  EXPECT_EQ(candidates.size(), 2u);
}

// Scales that a model has for an input are its own, and others are not.
TEST(LayerRowsTest, RealRowsCompeteWhereTheModelHasNoScales) {
  const std::vector<Candidate> both = {In(Layout::kNhwc, DType::kFloat16, true),
                                       In(Layout::kNhwc, DType::kFloat16, false)};
  std::vector<Candidate> candidates = both;
  SettleForDevice(Precision::kFloat16, {}, candidates);
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_FALSE(candidates[0].rounds_less);
  Problem scaled;
  scaled.inputs_as[0] = {DType::kUint8, 1.0f, 0};
  candidates = both;
  SettleForDevice(Precision::kFloat16, scaled, candidates);
  EXPECT_EQ(candidates.size(), 1u);
}

}  // namespace
}  // namespace swizzle
