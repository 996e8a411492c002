#include "model_loader/semantics/slice_arguments.h"

#include <map>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using Ints = std::vector<int64_t>;

// Inputs 1 to 4 of a Slice.
struct Lists {
  using Place = int64_t;
  std::map<size_t, Ints> inputs;

  bool Has(size_t i) const { return inputs.contains(i); }
  StatusOr<Ints> Places(size_t i, const char*) const { return inputs.at(i); }
  StatusOr<Ints> Integers(size_t i, const char*) const { return inputs.at(i); }
  Status Named(const Status& status) const { return Annotate(status, "named"); }
};

StatusOr<SliceArguments<int64_t>> Read(std::map<size_t, Ints> inputs,
                                       std::map<std::string, Attribute> attributes = {}) {
  Node node;
  node.op = "Slice";
  node.attributes = std::move(attributes);
  return SliceArgumentsOf(node, 3, Lists{std::move(inputs)});
}

TEST(SliceArgumentsTest, OfInputs) {
  const auto all = Read({{1, {1, 2}}, {2, {3, 4}}, {3, {-1, 0}}, {4, {2, -1}}});
  ASSERT_THAT(all, IsOk());
  EXPECT_EQ(all->starts, (Ints{1, 2}));
  EXPECT_EQ(all->ends, (Ints{3, 4}));
  EXPECT_EQ(all->axes, (Ints{2, 0}));
  EXPECT_EQ(all->steps, (Ints{2, -1}));
}

TEST(SliceArgumentsTest, WhatIsLeftOut) {
  const auto slice = Read({{1, {1, 2}}, {2, {3, 4}}});
  ASSERT_THAT(slice, IsOk());
  EXPECT_EQ(slice->axes, (Ints{0, 1}));
  EXPECT_EQ(slice->steps, (Ints{1, 1}));
}

TEST(SliceArgumentsTest, OfAttributes) {
  const auto slice = Read({}, {{"starts", Ints{1}}, {"ends", Ints{2}}, {"axes", Ints{-2}}});
  ASSERT_THAT(slice, IsOk());
  EXPECT_EQ(slice->starts, (Ints{1}));
  EXPECT_EQ(slice->ends, (Ints{2}));
  EXPECT_EQ(slice->axes, (Ints{1}));
}

TEST(SliceArgumentsTest, RefusesWhatDoesNotFitAndSaysSoAsItsUserDoes) {
  const auto invalid = [](const char* why) { return IsError(StatusCode::kInvalidArgument, why); };
  EXPECT_THAT(Read({}).status(), invalid("named: it lacks its starts or ends"));
  EXPECT_THAT(Read({{1, {1}}}).status(), invalid("named: it lacks its starts or ends"));
  EXPECT_THAT(Read({{1, {1}}, {2, {1, 2}}}).status(), invalid("differ in length"));
  EXPECT_THAT(Read({{1, {1}}, {2, {2}}, {4, {1, 1}}}).status(), invalid("differ in length"));
  EXPECT_THAT(Read({{1, {1}}, {2, {2}}, {3, {3}}}).status(), invalid("axis 3 is not one of 3"));
  EXPECT_THAT(Read({{1, {1, 1}}, {2, {2, 2}}, {3, {0, -3}}}).status(), invalid("axis 0 is given twice"));
}

}  // namespace
}  // namespace swizzle
