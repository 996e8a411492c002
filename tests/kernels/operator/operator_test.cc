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
    EXPECT_TRUE(!traits.Has(OpTraits::kPools) || IsWindowed(traits.op));
    EXPECT_TRUE(!traits.Has(OpTraits::kPrunable) || HasWeight(traits.op));
    EXPECT_TRUE(!traits.Has(OpTraits::kReducesTokens) || IsOfSequences(traits.op));
    EXPECT_FALSE(WorksInPlace(traits.op) && HasWeight(traits.op) && !ReadsRowsOfTokens(traits.op));
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

TEST(OperatorTest, MakesAttributesOfTheTypeThatTheTableSays) {
  for (const OpTraits& traits : kOpTraits) {
    Operator made;
    made.SetOp(traits.op);
    EXPECT_EQ(made.attributes.index(), traits.attributes) << traits.name;
  }
  EXPECT_EQ(std::get<Window>(AttributesOf(Op::kMaxPool)), Window());
}

TEST(OperatorDeathTest, GivesItsOwnAttributesOnly) {
  Operator norm{Op::kLayerNorm, Normalisation{1e-5f}};
  EXPECT_EQ(norm.normalisation().epsilon, 1e-5f);
  norm.normalisation().epsilon = 1e-3f;
  EXPECT_EQ(norm, (Operator{Op::kLayerNorm, Normalisation{1e-3f}}));
  EXPECT_DEATH(norm.window(), "the attributes asked of LayerNorm are not its own");
}

TEST(OperatorTest, CountsOperands) {
  EXPECT_EQ(InputCount({Op::kConv, Window()}), 1);
  EXPECT_EQ(InputCount({Op::kScale, {}}), 2);
  EXPECT_EQ(InputCount({Op::kEmbedding, Lookup{}}), 1);
  EXPECT_EQ(InputCount({Op::kEmbedding, Lookup{.by_position = true}}), 0);
  EXPECT_EQ(InputCount({Op::kSparseAttention, Attention{}}), 3);
  EXPECT_EQ(InputCount({Op::kAttention, Attention{.packed = true}}), 1);
  EXPECT_EQ(InputCount({Op::kConcat, ConcatParts{3, false, {1, 2, 3}}}), 3);
}

}  // namespace
}  // namespace swizzle
