#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

OnnxBuilder All(const Shape& shape, const std::map<std::string, Attribute>& attributes) {
  OnnxBuilder builder;
  builder.Input("x", shape).Node("Unique", {"x"}, {"y", "first", "place", "count"}, attributes);
  return builder.Output("y").Output("first").Output("place").Output("count");
}

TEST(Unique, WhatIsNoNumberComesLastAndOnce) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const auto sorted = Execute(All({5}, {}), {Floats({5}, {kNan, 2, kNan, 1, 2})});
  ASSERT_THAT(sorted, IsOk());
  const std::vector<float> values = Values((*sorted)[0]);
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_TRUE(std::isnan(values[2]));
  EXPECT_EQ(Wholes((*sorted)[1]), (std::vector<int64_t>{3, 1, 0}));
  EXPECT_EQ(Wholes((*sorted)[2]), (std::vector<int64_t>{2, 1, 2, 0, 1}));
  EXPECT_EQ(Wholes((*sorted)[3]), (std::vector<int64_t>{1, 2, 2}));
}

TEST(Unique, KeepsTheOrderWhereAsked) {
  const auto standing = Execute(All({5}, {{"sorted", int64_t{0}}}), {Floats({5}, {3, 2, 3, 1, 2})});
  ASSERT_THAT(standing, IsOk());
  EXPECT_EQ(Values((*standing)[0]), (std::vector<float>{3, 2, 1}));
  EXPECT_EQ(Wholes((*standing)[1]), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(Wholes((*standing)[2]), (std::vector<int64_t>{0, 1, 0, 2, 1}));
  EXPECT_EQ(Wholes((*standing)[3]), (std::vector<int64_t>{2, 2, 1}));
}

TEST(Unique, OfNothingIsNothing) {
  const auto none = Execute(All({0}, {}), {Floats({0}, {})});
  ASSERT_THAT(none, IsOk());
  EXPECT_EQ((*none)[0].shape, (Shape{0}));
  const auto empty_slices = Execute(All({3, 0}, {{"axis", int64_t{0}}}), {Floats({3, 0}, {})});
  ASSERT_THAT(empty_slices, IsOk());
  EXPECT_EQ((*empty_slices)[0].shape, (Shape{1, 0}));
  EXPECT_THAT(Execute(All({3}, {{"axis", int64_t{1}}}), {Floats({3}, {1, 2, 3})}),
              IsError(StatusCode::kInvalidArgument, "Unique node 'y_node'"));
}

}  // namespace
}  // namespace swizzle::interpreter
