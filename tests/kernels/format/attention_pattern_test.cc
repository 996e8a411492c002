#include "kernels/format/attention_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AttentionPatternTest, WorkedExample) {
  const AttentionPattern band = AttentionPattern::FromBand(4, 2, true);
  EXPECT_THAT(band.row_offsets, ElementsAre(0, 1, 3, 5, 7));
  EXPECT_THAT(band.col_indices, ElementsAre(0, 0, 1, 1, 2, 2, 3));
  EXPECT_THAT(band.Validate(), IsOk());
}

TEST(AttentionPatternTest, BandBothWays) {
  const AttentionPattern band = AttentionPattern::FromBand(3, 2, false);
  EXPECT_THAT(band.Keys(0), ElementsAre(0, 1));
  EXPECT_THAT(band.Keys(1), ElementsAre(0, 1, 2));
  EXPECT_THAT(band.Keys(2), ElementsAre(1, 2));
}

TEST(AttentionPatternTest, BandAndRandomHasTheSharesNonzeros) {
  const AttentionPattern pattern = AttentionPattern::FromBandAndRandom(1000, 50, 0.1, 3);
  EXPECT_THAT(pattern.Validate(), IsOk());
  const int64_t band = 50 * 1000 - 50 * 49 / 2, rest = 950 * 951 / 2;
  EXPECT_EQ(pattern.nnz(), band + rest / 10);
  int64_t near = 0, far = 0;  // as many places each
  for (int64_t query = 0; query < 1000; ++query) {
    EXPECT_EQ(pattern.Keys(query).back(), query);
    for (const int64_t key : pattern.Keys(query)) {
      const int64_t distance = query - key;
      near += distance >= 50 && distance < 150;
      far += distance >= 500 && distance < 500 + 250;  // 90,000 and 94,000 places
    }
  }
  EXPECT_GT(near, 4 * far);  // 1/100 against 1/600, less what is drawn up
  EXPECT_GT(far, 0);
}

TEST(AttentionPatternTest, SeedsDecide) {
  const auto draw = [](uint64_t seed) { return AttentionPattern::FromBandAndRandom(300, 8, 0.05, seed).col_indices; };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(AttentionPatternTest, AllAndNothingMayBeDrawn) {
  EXPECT_EQ(AttentionPattern::FromBandAndRandom(40, 8, 0, 1).col_indices,
            AttentionPattern::FromBand(40, 8, true).col_indices);
  EXPECT_EQ(AttentionPattern::FromBandAndRandom(40, 8, 1, 1).col_indices,
            AttentionPattern::FromBand(40, 40, true).col_indices);
  EXPECT_EQ(AttentionPattern::FromBandAndRandom(4, 8, 0.5, 1).nnz(), 10);
}

TEST(AttentionPatternTest, BlocksAreCutOffAndCountOnce) {
  const AttentionPattern pattern = AttentionPattern::FromBlocks(5, 2, {{2, 0}, {0, 2}, {2, 0}, {0, 0}});
  EXPECT_THAT(pattern.Validate(), IsOk());
  EXPECT_THAT(pattern.Keys(1), ElementsAre(0, 1, 4));
  EXPECT_THAT(pattern.Keys(2), IsEmpty());
  EXPECT_THAT(pattern.Keys(4), ElementsAre(0, 1));
}

TEST(AttentionPatternTest, MalformedPatternsAreRefused) {
  const AttentionPattern good = AttentionPattern::FromBand(4, 2, true);
  AttentionPattern bad = good;
  bad.row_offsets.pop_back();
  EXPECT_THAT(bad.Validate(), IsError(StatusCode::kInvalidArgument, "row offsets, not 5"));
  bad = good;
  bad.row_offsets.back() = 6;
  EXPECT_THAT(bad.Validate(), IsError(StatusCode::kInvalidArgument, "must run from 0 to 7"));
  bad = good;
  bad.row_offsets[2] = 9;
  EXPECT_THAT(bad.Validate(), IsError(StatusCode::kInvalidArgument, "row 2"));
  bad = good;
  bad.col_indices[6] = 4;
  EXPECT_THAT(bad.Validate(), IsError(StatusCode::kInvalidArgument, "key 4"));
  bad = good;
  bad.col_indices[6] = 2;
  EXPECT_THAT(bad.Validate(), IsError(StatusCode::kInvalidArgument, "query 3"));
}

TEST(AttentionPatternTest, StructureIsDetected) {
  const auto name = [](const AttentionPattern& pattern) { return DetectAttentionStructure(pattern).Name(); };
  EXPECT_EQ(name(AttentionPattern::FromBand(300, 17, true)), "causal band 17");
  EXPECT_EQ(name(AttentionPattern::FromBand(300, 17, false)), "band 17");
  EXPECT_EQ(name(AttentionPattern::FromBlocks(300, 128, {{0, 0}, {1, 2}, {2, 0}})), "128x128 blocks");
  EXPECT_EQ(name(AttentionPattern::FromBlocks(300, 64, {{0, 0}, {1, 2}, {4, 0}, {4, 4}})), "64x64 blocks");
  EXPECT_EQ(name(AttentionPattern::FromBlocks(300, 32, {{0, 0}, {1, 2}, {8, 3}})), "32x32 blocks");
  EXPECT_EQ(name(AttentionPattern::FromBlocks(300, 16, {{0, 0}, {1, 2}})), "arbitrary");
  EXPECT_EQ(name(AttentionPattern::FromBandAndRandom(300, 8, 0.1, 1)), "arbitrary");
  EXPECT_EQ(name({.tokens = 3, .row_offsets = {0, 0, 0, 0}, .col_indices = {}}), "arbitrary");
}

TEST(AttentionPatternTest, BundlesAreOrderedByNonzeros) {
  const AttentionPattern pattern = AttentionPattern::FromBlocks(6, 2, {{1, 0}, {2, 0}, {2, 1}});
  EXPECT_THAT(BundleSwizzle(pattern, 2), ElementsAre(2, 1, 0));
  EXPECT_THAT(BundleSwizzle(pattern, 4), ElementsAre(1, 0));
  EXPECT_THAT(BundleSwizzle(pattern, 1), ElementsAre(4, 5, 2, 3, 0, 1));
}

}  // namespace
}  // namespace swizzle
