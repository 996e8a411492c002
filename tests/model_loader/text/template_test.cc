#include "model_loader/text/template.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;
using ::testing::Pair;
using Strategy = Truncation::Strategy;

std::vector<int32_t> Numbers(int count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// How many are left of so many.
std::pair<size_t, size_t> Left(int first, int second, int64_t most) {
  std::vector<int32_t> one = Numbers(first), other = Numbers(second);
  EXPECT_THAT(Truncate({}, most, one, &other), IsOk());
  return {one.size(), other.size()};
}

TEST(Template, CountsWhatItAdds) {
  EXPECT_EQ(Template().AddedTo(true), 0);
  EXPECT_EQ(BertTemplate(1, 2).AddedTo(false), 2);
  EXPECT_EQ(BertTemplate(1, 2).AddedTo(true), 3);
  EXPECT_EQ(RobertaTemplate(1, 2).AddedTo(true), 4);
}

TEST(Truncate, TheLongerGivesWayFirst) {
  EXPECT_THAT(Left(2, 4, 7), Pair(2, 4));
  EXPECT_THAT(Left(2, 8, 7), Pair(2, 5));
  EXPECT_THAT(Left(8, 2, 7), Pair(5, 2));
  EXPECT_THAT(Left(4, 8, 7), Pair(3, 4));
  EXPECT_THAT(Left(8, 4, 7), Pair(4, 3));
  EXPECT_THAT(Left(8, 8, 7), Pair(3, 4));
  EXPECT_THAT(Left(4, 4, 7), Pair(3, 4));
  EXPECT_THAT(Left(4, 4, 0), Pair(0, 0));
  EXPECT_THAT(Left(0, 9, 7), Pair(0, 7));
}

TEST(Truncate, EitherEndGoes) {
  std::vector<int32_t> ids = Numbers(5);
  ASSERT_THAT(Truncate({}, 3, ids, nullptr), IsOk());
  EXPECT_THAT(ids, ElementsAre(0, 1, 2));
  ids = Numbers(5);
  ASSERT_THAT(Truncate({.max_tokens = 0, .strategy = Strategy::kLongestFirst, .from_left = true}, 3, ids, nullptr),
              IsOk());
  EXPECT_THAT(ids, ElementsAre(2, 3, 4));
}

TEST(Truncate, OneTextAloneMayGiveWay) {
  std::vector<int32_t> first = Numbers(4), second = Numbers(4);
  const Truncation only_first{.max_tokens = 0, .strategy = Strategy::kOnlyFirst, .from_left = false};
  const Truncation only_second{.max_tokens = 0, .strategy = Strategy::kOnlySecond, .from_left = false};
  ASSERT_THAT(Truncate(only_second, 6, first, &second), IsOk());
  EXPECT_THAT(second, ElementsAre(0, 1));
  ASSERT_THAT(Truncate(only_first, 5, first, &second), IsOk());
  EXPECT_THAT(first, ElementsAre(0, 1, 2));
  EXPECT_THAT(Truncate(only_second, 3, first, &second),
              IsError(StatusCode::kInvalidArgument, "truncates the second text only, which has 2 of 5 tokens"));
  EXPECT_THAT(Truncate(only_second, 2, first, nullptr),
              IsError(StatusCode::kInvalidArgument, "there is one text of 3 tokens, of which 2 may be"));
}

}  // namespace
}  // namespace swizzle::text
