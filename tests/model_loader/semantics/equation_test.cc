#include "model_loader/semantics/equation.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::kInvalid;

constexpr int kA = 26;  // of 'a'; capitals come first

StatusOr<Equation> Read(std::string_view text, std::vector<int64_t> ranks) { return ReadEquation(text, ranks); }

TEST(EquationTest, GivesEachDimensionALabel) {
  const auto equation = Read(" aB , Bc->ac", {2, 2});
  ASSERT_THAT(equation, IsOk());
  EXPECT_EQ(equation->operands[0], (Labels{kA, 1}));
  EXPECT_EQ(equation->operands[1], (Labels{1, kA + 2}));
  EXPECT_EQ(equation->result, (Labels{kA, kA + 2}));
}

TEST(EquationTest, DotsMeetAtTheirEnd) {
  const auto equation = Read("...a,b...", {4, 2});
  ASSERT_THAT(equation, IsOk());
  EXPECT_EQ(equation->operands[0], (Labels{kFirstDot + 2, kFirstDot + 1, kFirstDot, kA}));
  EXPECT_EQ(equation->operands[1], (Labels{kA + 1, kFirstDot}));
  EXPECT_EQ(equation->result, (Labels{kFirstDot + 2, kFirstDot + 1, kFirstDot, kA, kA + 1}));
}

TEST(EquationTest, WithoutAResultItIsWhatStandsOnceByTheAlphabet) {
  const auto equation = Read("ba,aC", {2, 2});
  ASSERT_THAT(equation, IsOk());
  EXPECT_EQ(equation->result, (Labels{2, kA + 1}));
}

TEST(EquationTest, RefusesWhatIsNone) {
  EXPECT_THAT(Read("", {2}), IsError(kInvalid, "an operand of 2 dimensions 0 letters"));
  EXPECT_THAT(Read("ab", {1, 1}), IsError(kInvalid, "not one of 2 operands"));
  EXPECT_THAT(Read("a,b,", {1, 1}), IsError(kInvalid, "not one of 2 operands"));
  EXPECT_THAT(Read("a1", {2}), IsError(kInvalid, "'1' where a letter"));
  EXPECT_THAT(Read("a..", {2}), IsError(kInvalid, "'.' where a letter"));
  EXPECT_THAT(Read("......", {2}), IsError(kInvalid, "once"));
  EXPECT_THAT(Read("abc...", {2}), IsError(kInvalid, "an operand of 2 dimensions 3 letters"));
  EXPECT_THAT(Read("ab->ac", {2}), IsError(kInvalid, "one that no operand has"));
  EXPECT_THAT(Read("ab->aa", {2}), IsError(kInvalid, "a letter twice"));
  EXPECT_THAT(Read("a->b->", {1}), IsError(kInvalid, "'-' where a letter"));
}

}  // namespace
}  // namespace swizzle
