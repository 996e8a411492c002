#include "kernels/operator/operator.h"

#include <gtest/gtest.h>

#include <set>

namespace swizzle {
namespace {

TEST(OperatorTest, NamesEveryOperatorOnce) {
  std::set<std::string_view> names;
  for (const OpTraits& traits : kOpTraits) EXPECT_TRUE(names.insert(OpName(traits.op)).second) << traits.name;
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(OpName(Op::kDepthwiseConv), "DepthwiseConv");
  EXPECT_EQ(OpName(static_cast<Op>(99)), "unknown");
}

TEST(OperatorTest, FlagsAgreeWithEachOther) {
  for (const OpTraits& traits : kOpTraits) {
    SCOPED_TRACE(traits.name);
    if (traits.Has(OpTraits::kPools)) EXPECT_TRUE(traits.Has(OpTraits::kSlidesWindow));
    if (traits.Has(OpTraits::kPrunable)) EXPECT_NE(traits.weight, WeightRule::kNone);
    if (traits.Has(OpTraits::kReducesTokens)) EXPECT_TRUE(traits.Has(OpTraits::kOfSequences));
    if (traits.Has(OpTraits::kWorksInPlace)) EXPECT_EQ(traits.weight, WeightRule::kNone);
    EXPECT_FALSE(traits.Has(OpTraits::kOnlyRenames) && traits.Has(OpTraits::kOfPlansOnly));
  }
}

TEST(OperatorTest, AnswersFromTheTable) {
  EXPECT_TRUE(IsBinary(Op::kScale));
  EXPECT_FALSE(IsBinary(Op::kAttention));
  EXPECT_TRUE(IsAttention(Op::kSparseAttention));
  EXPECT_TRUE(IsOfSequences(Op::kEmbedding));
  EXPECT_FALSE(IsOfSequences(Op::kConvertLayout));
  EXPECT_TRUE(WorksInPlace(Op::kFunction));
  EXPECT_FALSE(WorksInPlace(Op::kScale));
  EXPECT_TRUE(IsPrunable(Op::kDepthwiseConv));
  EXPECT_FALSE(IsPrunable(Op::kEmbedding));
  EXPECT_TRUE(HasWeight(Op::kLayerNorm));
}

}  // namespace
}  // namespace swizzle
