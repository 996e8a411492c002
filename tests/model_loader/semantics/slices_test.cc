#include "model_loader/semantics/slices.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// The places that a slice takes.
std::vector<int64_t> Taken(int64_t start, int64_t end, int64_t step, int64_t size) {
  const auto range = ClampSlice(start, end, step, size);
  EXPECT_THAT(range, IsOk());
  std::vector<int64_t> places;
  for (int64_t i = 0; i < range->count; ++i) places.push_back(range->start + i * range->step);
  return places;
}

TEST(SlicesTest, ForwardsFromEitherEnd) {
  EXPECT_THAT(Taken(1, 3, 1, 4), ElementsAre(1, 2));
  EXPECT_THAT(Taken(-3, -1, 1, 4), ElementsAre(1, 2));
  EXPECT_THAT(Taken(0, 4, 2, 4), ElementsAre(0, 2));
  EXPECT_THAT(Taken(3, 1, 1, 4), ElementsAre());
}

TEST(SlicesTest, BackwardsFromEitherEnd) {
  EXPECT_THAT(Taken(3, 0, -1, 4), ElementsAre(3, 2, 1));
  EXPECT_THAT(Taken(-1, kLeast, -2, 4), ElementsAre(3, 1));
  EXPECT_THAT(Taken(kMost, kLeast, -3, 4), ElementsAre(3, 0));
  EXPECT_THAT(Taken(kLeast, kLeast, -1, 4), ElementsAre(0)) << "the start is clamped to the first element";
}

TEST(SlicesTest, WhatLiesOutsideIsClamped) {
  EXPECT_THAT(Taken(-100, 2, 1, 4), ElementsAre(0, 1));
  EXPECT_THAT(Taken(kLeast, kMost, 3, 4), ElementsAre(0, 3));
  EXPECT_THAT(Taken(kMost, kMost, 1, 4), ElementsAre());
  EXPECT_THAT(Taken(kLeast, kMost, kMost, 4), ElementsAre(0));
  EXPECT_THAT(Taken(kMost, kLeast, kLeast, 4), ElementsAre(3));
  EXPECT_THAT(Taken(0, kMost, 1, 0), ElementsAre());
  EXPECT_THAT(Taken(0, kLeast, -1, 0), ElementsAre());
}

TEST(SlicesTest, StepsOfNothingAreRefused) {
  EXPECT_THAT(ClampSlice(0, 1, 0, 4).status(), IsError(StatusCode::kInvalidArgument, "step 0"));
}

TEST(SlicesTest, PartsAreGivenOrEqual) {
  EXPECT_THAT(*PartLengths({1, 0, 3}, 4, 3), ElementsAre(1, 0, 3));
  EXPECT_THAT(*PartLengths({}, 6, 3), ElementsAre(2, 2, 2));
  EXPECT_THAT(*PartLengths({}, 5, 3), ElementsAre(2, 2, 1));
  EXPECT_THAT(*PartLengths({}, kMost, 1), ElementsAre(kMost));
}

TEST(SlicesTest, PartsMustAddUp) {
  const auto refused = [](const char* why) { return IsError(StatusCode::kInvalidArgument, why); };
  EXPECT_THAT(PartLengths({1, 2}, 4, 2).status(), refused("2 parts for 2 outputs of together 4"));
  EXPECT_THAT(PartLengths({2, 2}, 4, 3).status(), refused("2 parts for 3 outputs"));
  EXPECT_THAT(PartLengths({5, -1}, 4, 2).status(), refused("do not add up to 4"));
  EXPECT_THAT(PartLengths({kMost, kMost, 6}, 4, 3).status(), refused("do not add up to 4"));
  EXPECT_THAT(PartLengths({}, 5, 4).status(), refused("no 4 parts"));
}

}  // namespace
}  // namespace swizzle
