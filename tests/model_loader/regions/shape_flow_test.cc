#include "model_loader/regions/shape_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_loader/fallback/load.h"
#include "tests/support/onnx_builder.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Graph GraphOf(const OnnxBuilder& builder) {
  return (*fallback::ReadProgram(std::span<const std::byte>(builder.Bytes())))->graph();
}
bool Follow(const OnnxBuilder& builder) { return ShapesFollowShapes(GraphOf(builder)); }

TEST(ShapesFollowShapes, UnlessTheyAreOfElements) {
  OnnxBuilder by_shape;
  by_shape.Input("x", {-1, 4}).Node("Shape", {"x"}, {"s"}).Node("Expand", {"x", "s"}, {"y"}).Output("y");
  EXPECT_TRUE(Follow(by_shape));
  OnnxBuilder by_element;
  by_element.Input("x", {-1, 4}).Node("NonZero", {"x"}, {"y"}).Output("y");
  EXPECT_FALSE(Follow(by_element));
  OnnxBuilder unique;
  unique.Input("x", {-1}).Node("Unique", {"x"}, {"y"}).Output("y");
  EXPECT_FALSE(Follow(unique));
}

// y = body(x), run as often as `times` says.
OnnxBuilder Repeated(const std::string& times, const std::string& op) {
  OnnxBuilder builder, body;
  builder.Input("x", {-1, 4}).Int64s("constant", {}, {3}).Int64s("axes", {1}, {1});
  builder.Node("Shape", {"x"}, {"shape"}).Node("ReduceProd", {"shape"}, {"by_shape"}, {{"keepdims", int64_t{0}}});
  builder.Node("ReduceMax", {"x"}, {"largest"}, {{"keepdims", int64_t{0}}});
  builder.Node("Cast", {"largest"}, {"by_element"}, {{"to", int64_t{onnx::TensorProto::INT64}}});
  builder.Node("Loop", {times, "", "x"}, {"y"}).Output("y");
  body.Node("Identity", {"again"}, {"goes_on"}).Output("goes_on").Node(op, {"carried"}, {"next"}).Output("next");
  builder.Body("body", {"turn", "again", "carried"}, body);
  return builder;
}

TEST(ShapesFollowShapes, WithinLoopsThatGoByShapes) {
  EXPECT_TRUE(Follow(Repeated("constant", "Neg")));
  EXPECT_TRUE(Follow(Repeated("by_shape", "Neg")));
  EXPECT_FALSE(Follow(Repeated("by_element", "Neg")));
  EXPECT_FALSE(Follow(Repeated("constant", "NonZero")));
}

TEST(ShapesFollowShapes, NotWhereAnElementChoosesABranch) {
  OnnxBuilder builder, all, half;
  builder.Input("x", {4}).Floats("limit", {}, {0}).Node("ReduceMax", {"x"}, {"m"}, {{"keepdims", int64_t{0}}});
  builder.Node("Greater", {"m", "limit"}, {"chosen"}).Node("If", {"chosen"}, {"y"}).Output("y");
  all.Node("Neg", {"x"}, {"same"}).Output("same");
  half.Node("Split", {"x"}, {"first", "second"}, {{"axis", int64_t{0}}}).Output("first");
  builder.Body("then_branch", {}, all).Body("else_branch", {}, half);
  EXPECT_FALSE(Follow(builder));
}

TEST(SteadyNodes, ReadShapesAndConstants) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Int64s("one", {}, {1}).Node("Shape", {"x"}, {"shape"});
  builder.Node("Gather", {"shape", "one"}, {"width"}).Node("Cast", {"width"}, {"real"}, {{"to", int64_t{1}}});
  builder.Node("Sqrt", {"real"}, {"root"}).Node("Div", {"x", "root"}, {"y"}).Node("Neg", {"y"}, {"z"}).Output("z");
  EXPECT_THAT(SteadyNodes(GraphOf(builder)), ElementsAre(0, 1, 2, 3));
  builder.Node("NonZero", {"z"}, {"places"}).Node("Shape", {"places"}, {"count"}).Output("count");
  EXPECT_THAT(SteadyNodes(GraphOf(builder)), IsEmpty());
}

}  // namespace
}  // namespace swizzle::regions
