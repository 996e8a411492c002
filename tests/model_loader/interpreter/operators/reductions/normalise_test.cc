#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::interpreter {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::FloatEq;
using ::testing::Pointwise;

// Of 3 and 4 the mean square is 12.5; of 1, 1, 1, 5 it is 7.
TEST(RmsNormalization, DividesByTheRootOfTheMeanSquareFromItsAxisOn) {
  OnnxBuilder rows = OneNode("RMSNormalization", {2, 2}, {"x", "scale"}, {{"epsilon", 0.0f}}, 23);
  rows.Floats("scale", {2}, {1, 10});
  const auto of_rows = Execute(rows, {Floats({2, 2}, {3, 4, -3, 4})});
  ASSERT_THAT(of_rows, IsOk());
  const float root = std::sqrt(12.5f);
  EXPECT_THAT(Values((*of_rows)[0]), Pointwise(FloatEq(), {3 / root, 40 / root, -3 / root, 40 / root}));

  OnnxBuilder planes =
      OneNode("RMSNormalization", {1, 2, 2}, {"x", "scale"}, {{"epsilon", 2.0f}, {"axis", int64_t{1}}}, 23);
  planes.Floats("scale", {2, 2}, {1, 1, 1, 2});
  const auto of_planes = Execute(planes, {Floats({1, 2, 2}, {1, 1, 1, 5})});
  ASSERT_THAT(of_planes, IsOk());
  EXPECT_THAT(Values((*of_planes)[0]), Pointwise(FloatEq(), {1 / 3.0f, 1 / 3.0f, 1 / 3.0f, 10 / 3.0f}));
}

TEST(SimplifiedLayerNormalization, AlsoGivesWhatItMultipliesBy) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4}).Floats("scale", {4}, {1, 1, 1, 1});
  builder.Node("SimplifiedLayerNormalization", {"x", "scale"}, {"y", "factor"}, {{"epsilon", 2.0f}});
  const auto both = Execute(builder.Output("y").Output("factor"), {Floats({1, 4}, {1, 1, 1, 5})});
  ASSERT_THAT(both, IsOk());
  EXPECT_THAT(Values((*both)[1]), Pointwise(FloatEq(), {1 / 3.0f}));
}

}  // namespace
}  // namespace swizzle::interpreter
