#include "tests/bench/seeds/claims.h"

#include <gtest/gtest.h>

namespace swizzle::bench {
namespace {

std::string VerdictOf(double published, double ours) { return Verdict({.published = published, .ours = ours}); }

TEST(Claims, GainsAreReproducedWeakerOrRefuted) {
  EXPECT_EQ(VerdictOf(2, 2.5), "reproduced");
  EXPECT_EQ(VerdictOf(2, 1.8), "reproduced");
  EXPECT_EQ(VerdictOf(2, 1.7), "weaker");
  EXPECT_EQ(VerdictOf(1.1, 1.04), "weaker");  // nine tenths of the ratio, less than half of the gain
  EXPECT_EQ(VerdictOf(2, 0.9), "refuted");
}

TEST(Claims, LossesAreReproducedOnlyNearTheirRatio) {
  EXPECT_EQ(VerdictOf(0.8, 0.8), "reproduced");
  EXPECT_EQ(VerdictOf(0.8, 0.54), "reproduced");
  EXPECT_EQ(VerdictOf(0.76, 0.31), "worse here");
  EXPECT_EQ(VerdictOf(0.4, 1.3), "better here");
}

TEST(Claims, WithoutAPublishedFigureTheyAreNew) { EXPECT_EQ(VerdictOf(0, 3), "new"); }

}  // namespace
}  // namespace swizzle::bench
