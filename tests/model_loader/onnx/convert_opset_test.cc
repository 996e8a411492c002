#include "model_loader/onnx/convert_opset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using interpreter::Execute;
using interpreter::Values;
using ::testing::FloatNear;
using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;
using ::testing::Pointwise;

constexpr auto kMissing = StatusCode::kUnimplemented;
using Ints = std::vector<int64_t>;

// What the model makes of numbers that count up, before and after it is converted.
void ExpectSame(OnnxBuilder builder, const Shape& shape, int64_t opset) {
  Tensor x =
      Tensor::Floats(shape, std::vector<float>(static_cast<size_t>(Tensor{DType::kFloat32, shape, {}}.elements())));
  std::iota(x.floats().begin(), x.floats().end(), -3.5f);
  const auto before = Execute(builder, {x});
  ASSERT_THAT(before, IsOk());
  ASSERT_THAT(ConvertOpset(builder.model(), opset), IsOk());
  EXPECT_EQ(builder.model().opset_import(0).version(), opset);
  const auto after = Execute(builder, {x});
  ASSERT_THAT(after, IsOk());
  for (size_t i = 0; i < before->size(); ++i) {
    EXPECT_EQ((*after)[i].shape, (*before)[i].shape);
    EXPECT_THAT(Values((*after)[i]), Pointwise(FloatNear(1e-6f), Values((*before)[i])));
  }
}

TEST(ConvertOpsetTest, ListsThatWereAttributesBecomeInputs) {
  for (const int64_t opset : {11, 13}) {
    OnnxBuilder builder(9);
    builder.Input("x", {1, 3, 4, 4});
    builder.Node("Slice", {"x"}, {"s"}, {{"starts", Ints{1}}, {"ends", Ints{3}}, {"axes", Ints{1}}});
    builder.Node("Clip", {"s"}, {"c"}, {{"min", 0.0f}, {"max", 20.0f}});
    builder.Node("Pad", {"c"}, {"p"}, {{"pads", Ints{0, 0, 1, 1, 0, 0, 1, 1}}, {"value", 2.0f}});
    builder.Node("Unsqueeze", {"p"}, {"u"}, {{"axes", Ints{0}}}).Node("Squeeze", {"u"}, {"q"}, {{"axes", Ints{0}}});
    builder.Node("ReduceSum", {"q"}, {"r"}, {{"axes", Ints{3}}});
    builder.Node("Split", {"r"}, {"a", "b"}, {{"axis", int64_t{1}}, {"split", Ints{1, 1}}});
    builder.Node("TopK", {"a"}, {"v", "i"}, {{"k", int64_t{2}}, {"axis", int64_t{2}}});
    ExpectSame(builder.Output("v").Output("b").Output("c"), {1, 3, 4, 4}, opset);
  }
}

TEST(ConvertOpsetTest, UpsamplingKeepsItsPlaces) {
  for (const char* mode : {"nearest", "linear"}) {
    OnnxBuilder builder(9);
    builder.Input("x", {1, 1, 3, 3}).Floats("scales", {4}, {1, 1, 2, 2});
    builder.Node("Upsample", {"x", "scales"}, {"y"}, {{"mode", mode}}).Output("y");
    ExpectSame(builder, {1, 1, 3, 3}, 13);
    OnnxBuilder older(8);
    older.Input("x", {1, 1, 3, 3});
    older.Node("Upsample", {"x"}, {"y"}, {{"mode", mode}, {"scales", std::vector<float>{1, 1, 2, 2}}}).Output("y");
    ExpectSame(older, {1, 1, 3, 3}, 13);
  }
}

TEST(ConvertOpsetTest, ImagesShrinkToTheSamePlaces) {
  const auto shrinking = [](float down) {
    OnnxBuilder builder(10);
    builder.Input("x", {1, 1, 4, 5}).Floats("scales", {4}, {1, 1, down, 0.6f});
    return builder.Node("Resize", {"x", "scales"}, {"y"}, {{"mode", "nearest"}}).Output("y");
  };
  ExpectSame(shrinking(0.5f), {1, 1, 4, 5}, 13);
  OnnxBuilder both = shrinking(2.0f);
  EXPECT_THAT(ConvertOpset(both.model(), 13), IsError(kMissing, "it shrinks one dimension and stretches another"));
}

TEST(ConvertOpsetTest, SoftmaxStaysOverSeveralDimensions) {
  for (const int64_t axis : {-1, 1, 2}) {
    OnnxBuilder builder(11);
    builder.Input("x", {2, 3, 4}).Node("Softmax", {"x"}, {"s"}, {{"axis", axis}}).Node("Neg", {"s"}, {"y"}).Output("y");
    builder.Output("s");
    ExpectSame(builder, {2, 3, 4}, 13);
  }
}

TEST(ConvertOpsetTest, WhatSaysOnlyHowToTrainGoes) {
  OnnxBuilder builder(6);
  builder.Input("x", {2, 3}).Floats("one", {}, {1});
  builder.Node("Add", {"x", "one"}, {"a"}, {{"broadcast", int64_t{1}}});
  builder.Node("Dropout", {"a"}, {"y"}, {{"is_test", int64_t{1}}, {"ratio", 0.5f}}).Output("y");
  ExpectSame(builder, {2, 3}, 13);
}

TEST(ConvertOpsetTest, GraphsWithinNodesAreConverted) {
  OnnxBuilder branch(11);
  branch.Node("Unsqueeze", {"x"}, {"r"}, {{"axes", Ints{0}}}).Output("r");
  OnnxBuilder builder(11);
  builder.Input("x", {2}).Floats("zero", {}, {0});
  builder.Node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", int64_t{0}}}).Node("Greater", {"sum", "zero"}, {"chosen"});
  builder.Node("If", {"chosen"}, {"y"}).Body("then_branch", {}, branch).Body("else_branch", {}, branch).Output("y");
  ExpectSame(builder, {2}, 13);
}

TEST(ConvertOpsetTest, LaterModelsStay) {
  OnnxBuilder builder(17);
  builder.Input("x", {2}).Node("Neg", {"x"}, {"y"}).Output("y");
  const std::vector<std::byte> before = builder.Bytes();
  EXPECT_THAT(ConvertOpset(builder.model(), 13), IsOk());
  EXPECT_EQ(builder.Bytes(), before);
}

TEST(ConvertOpsetTest, WhatHasNoLikeIsNamed) {
  OnnxBuilder builder(6);
  builder.Input("x", {2, 3, 4}).Floats("b", {3}, {1, 2, 3});
  builder.Node("Add", {"x", "b"}, {"y"}, {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}}).Output("y");
  EXPECT_THAT(ConvertOpset(builder.model(), 13), IsError(kMissing, "'Add' node 'y_node' has no like in opset 13"));
  OnnxBuilder oldest(5);
  EXPECT_THAT(ConvertOpset(oldest.model(), 13), IsError(kMissing, "opset 5; those before 6"));
}

}  // namespace
}  // namespace swizzle
