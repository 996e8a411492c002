#include "model_loader/plan/run/token_packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TensorView MaskView(const std::vector<int64_t>& mask, int64_t rows) {
  return {DType::kInt64, {rows, static_cast<int64_t>(mask.size()) / rows}, std::as_bytes(std::span(mask))};
}

TEST(TokenPackingTest, WithoutAMaskEverythingIsComputed) {
  TokenPacking packing({.skips_masked = true});
  packing.Add(2, 3, std::nullopt);
  packing.Add(1, 2, std::nullopt);
  EXPECT_EQ(packing.rows(), 3);
  EXPECT_EQ(packing.tokens(), 8);
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 3, 6, 8));
  EXPECT_THAT(packing.sequences().positions, ElementsAre(0, 1, 2, 0, 1, 2, 0, 1));
  EXPECT_THAT(packing.sequences().key_bias, IsEmpty());
  EXPECT_THAT(packing.sources(), ElementsAre(0, 1, 2, 3, 4, 5, 0, 1));
}

TEST(TokenPackingTest, LeavesMaskedTokensOut) {
  const std::vector<int64_t> mask = {1, 1, 0, 0, 1, 0};
  const PackingRules rules{.skips_masked = true, .masked_bias = -10000};
  TokenPacking packing(rules);
  packing.Add(2, 3, MaskView(mask, 2));
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 2, 3));
  EXPECT_THAT(packing.sequences().positions, ElementsAre(0, 1, 1));
  EXPECT_THAT(packing.sequences().key_bias, IsEmpty());
  EXPECT_THAT(packing.sources(), ElementsAre(0, 1, 4));
  EXPECT_EQ(CountTokens(rules, 2, 3, MaskView(mask, 2)), 3);
}

TEST(TokenPackingTest, ComputesMaskedTokensThatAreRead) {
  const std::vector<int64_t> mask = {0, 1, 1, 0};
  TokenPacking packing({.skips_masked = true, .keeps_first = true, .masked_bias = -10000});
  packing.Add(1, 4, MaskView(mask, 1));
  EXPECT_THAT(packing.sequences().positions, ElementsAre(0, 1, 2));
  EXPECT_THAT(packing.sequences().key_bias, ElementsAre(-10000, 0, 0));
  TokenPacking from_the_end({.skips_masked = true, .keeps_last = true, .masked_bias = -1});
  from_the_end.Add(1, 4, MaskView(mask, 1));
  EXPECT_THAT(from_the_end.sequences().positions, ElementsAre(1, 2, 3));
  EXPECT_THAT(from_the_end.sequences().key_bias, ElementsAre(0, 0, -1));
}

// So that distances of tokens stay what they are.
TEST(TokenPackingTest, ComputesWhatIsBetweenOthers) {
  const std::vector<int64_t> mask = {0, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  const PackingRules rules{.skips_masked = true, .keeps_between = true, .masked_bias = -10000};
  TokenPacking packing(rules);
  packing.Add(2, 5, MaskView(mask, 2));
  EXPECT_THAT(packing.sequences().positions, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 3, 4)) << "of nothing but masked tokens, the last";
  EXPECT_THAT(packing.sequences().key_bias, ElementsAre(0, -10000, 0, -10000));
  EXPECT_EQ(CountTokens(rules, 2, 5, MaskView(mask, 2)), 4);
  TokenPacking with_first({.skips_masked = true, .keeps_first = true, .keeps_between = true, .masked_bias = -1});
  with_first.Add(1, 5, MaskView({mask.begin(), mask.begin() + 5}, 1));
  EXPECT_THAT(with_first.sequences().positions, ElementsAre(0, 1, 2, 3));
}

TEST(TokenPackingTest, EndsBehindTheFirstTokenThatHoldsANumber) {
  const std::vector<int64_t> ids = {5, 9, 9, 7, 7, 7, 9, 1, 9};
  const PackingRules rules{.end = SequenceEnd{0, false, 9}};
  TokenPacking packing(rules);
  packing.Add(3, 3, std::nullopt, std::nullopt, MaskView(ids, 3));
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 2, 3, 4)) << "of what holds none, the first";
  EXPECT_THAT(packing.sources(), ElementsAre(0, 1, 3, 6));
  EXPECT_EQ(CountTokens(rules, 3, 3, std::nullopt, MaskView(ids, 3)), 4);
}

TEST(TokenPackingTest, EndsBehindTheFirstOfTheLargestNumbers) {
  const std::vector<int64_t> ids = {5, 9, 9, 7, 7, 8}, mask = {1, 0, 1, 1, 0, 1};
  const PackingRules rules{.skips_masked = true, .keeps_last = true, .end = SequenceEnd{0, true, 0}};
  TokenPacking packing(rules);
  packing.Add(2, 3, MaskView(mask, 2), std::nullopt, MaskView(ids, 2));
  EXPECT_THAT(packing.sources(), ElementsAre(0, 1, 3, 5)) << "the end is computed though it is masked";
  EXPECT_EQ(CountTokens(rules, 2, 3, MaskView(mask, 2), MaskView(ids, 2)), 4);
}

TEST(TokenPackingTest, ComputesAllWhereMaskedTokensMayBeRead) {
  const std::vector<int64_t> mask = {1, 0};
  const PackingRules rules{.masked_bias = -10000};
  TokenPacking packing(rules);
  packing.Add(1, 2, MaskView(mask, 1));
  EXPECT_THAT(packing.sequences().positions, ElementsAre(0, 1));
  EXPECT_THAT(packing.sequences().key_bias, ElementsAre(0, -10000));
  EXPECT_EQ(CountTokens(rules, 1, 2, MaskView(mask, 1)), 2);
}

TEST(TokenPackingTest, PositionsCountTokensThatAreNotPadding) {
  const std::vector<int64_t> ids = {5, 1, 6, 7, 1, 1, 8, 9}, mask = {1, 1, 0, 1, 0, 1, 1, 1};
  TokenPacking packing({.skips_masked = true, .padding = 1});
  packing.Add(2, 4, MaskView(mask, 2), MaskView(ids, 2));
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 3, 6));
  EXPECT_THAT(packing.sequences().positions, ElementsAre(1, 0, 3, 0, 1, 2));  // what is left out counts, too
}

TEST(TokenPackingTest, NoSequenceIsEmpty) {
  const std::vector<int64_t> mask = {0, 0, 1, 1};
  const PackingRules rules{.skips_masked = true, .masked_bias = -10000};
  TokenPacking packing(rules);
  packing.Add(2, 2, MaskView(mask, 2));
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 1, 3));
  EXPECT_EQ(CountTokens(rules, 2, 2, MaskView(mask, 2)), 3);
}

TEST(TokenPackingTest, IsReused) {
  const std::vector<int32_t> mask = {1, 0};
  const TensorView view{DType::kInt32, {1, 2}, std::as_bytes(std::span(mask))};
  TokenPacking packing({.masked_bias = -1});
  packing.Add(1, 2, view);
  packing.Clear();
  packing.Add(1, 2, std::nullopt);
  EXPECT_THAT(packing.sequences().begins, ElementsAre(0, 2));
  EXPECT_THAT(packing.sequences().key_bias, IsEmpty());
}

}  // namespace
}  // namespace swizzle
