#include "model_loader/shapes/symbolic_walk.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/support/onnx_builder.h"

namespace swizzle {
namespace {

using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

// A walk over all nodes as the file has them. The symbols of an input's free dimensions are s0, s1, ... in order.
class SymbolicWalkTest : public ::testing::Test {
 protected:
  // "[1*s0,3]" of the value; "?" where not even its rank is known.
  std::string ShapeOf(OnnxBuilder builder, const std::string& name) {
    builder.Output(name);
    const auto program =
        interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()), {}, interpreter::Nodes::kAll);
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return "";
    // The constants' elements are the program's: they are given back.
    Graph graph = (*program)->graph();
    for (const auto& [value, array] : (*program)->constants()) {
      const auto bytes = array.AsBytes();
      graph.values[static_cast<size_t>(value)].constant = {array.dtype, array.shape, {bytes.begin(), bytes.end()}};
    }
    SymbolicWalk walk(graph);
    for (const Node& node : graph.nodes) walk.Visit(node);
    const SymbolicValue& value = walk.Of(graph.outputs.back().value);
    if (!value.shape) return "?";
    std::string text;
    for (const SymbolicInt& size : *value.shape) text += (text.empty() ? "" : ",") + size.Text();
    return "[" + text + "]";
  }
};

TEST_F(SymbolicWalkTest, WindowsKeepPlanesOrNot) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1}).Counting("w", {8, 3, 3, 3}).Counting("v", {4, 8, 1, 1});
  builder.Node("Conv", {"x", "w"}, {"same"}, {{"pads", Ints{1, 1, 1, 1}}}).Node("Conv", {"same", "v"}, {"narrow"});
  builder.Node("Conv", {"x", "w"}, {"smaller"}).Node("Conv", {"x", "w"}, {"as_small"});
  builder.Node("Add", {"smaller", "as_small"}, {"sum"});
  builder.Node("MaxPool", {"x"}, {"pooled"}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  EXPECT_EQ(ShapeOf(builder, "same"), "[1*s0,8,1*s1,1*s2]");
  EXPECT_EQ(ShapeOf(builder, "narrow"), "[1*s0,4,1*s1,1*s2]");
  EXPECT_EQ(ShapeOf(builder, "smaller"), ShapeOf(builder, "sum")) << "what is computed alike is as large";
  EXPECT_EQ(ShapeOf(builder, "pooled").substr(0, 8), "[1*s0,3,");
  EXPECT_NE(ShapeOf(builder, "pooled"), ShapeOf(builder, "x"));
}

TEST_F(SymbolicWalkTest, ReshapesAreFollowedThroughProducts) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 12}).Int64s("heads", {4}, {0, 0, 4, 3}).Int64s("rows", {2}, {-1, 12});
  builder.Node("Reshape", {"x", "heads"}, {"h"});
  builder.Node("Transpose", {"h"}, {"t"}, {{"perm", Ints{0, 2, 1, 3}}}).Node("Reshape", {"x", "rows"}, {"r"});
  builder.Node("Shape", {"x"}, {"s"}).Node("Reshape", {"r", "s"}, {"back"}).Node("Flatten", {"t"}, {"f"});
  EXPECT_EQ(ShapeOf(builder, "t"), "[1*s0,4,1*s1,3]");
  EXPECT_EQ(ShapeOf(builder, "r"), "[1*s0*s1,12]");
  EXPECT_EQ(ShapeOf(builder, "back"), "[1*s0,1*s1,12]");
  EXPECT_EQ(ShapeOf(builder, "f"), "[1*s0,12*s1]");
}

TEST_F(SymbolicWalkTest, SizesThatTheGraphComputes) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 6, -1}).Int64s("two", {1}, {2}).Int64s("one", {1}, {1}).Int64s("left", {1}, {-1});
  builder.Int64s("last", {}, {2}).Int64s("axis", {1}, {0}).Int64s("three", {1}, {3});
  builder.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "last"}, {"length"});
  builder.Node("Unsqueeze", {"length", "axis"}, {"l"}).Node("Gather", {"s", "one"}, {"channels"});
  builder.Node("Div", {"channels", "two"}, {"half"}).Node("Mul", {"l", "two"}, {"doubled"});
  builder.Node("Concat", {"left", "half", "doubled"}, {"to"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"x", "to"}, {"y"}).Node("Equal", {"to", "left"}, {"is_left"});
  builder.Node("ConstantOfShape", {"three"}, {"ones"}, {{"value", Tensor::Int64s({1}, std::vector<int64_t>{1})}});
  builder.Node("Where", {"is_left", "ones", "to"}, {"chosen"}).Floats("c", {1, 1, 1}, {1});
  builder.Node("Expand", {"c", "chosen"}, {"z"});
  EXPECT_EQ(ShapeOf(builder, "y"), "[1*s0,3,2*s1]");
  EXPECT_EQ(ShapeOf(builder, "z"), "[1,3,2*s1]");
}

TEST_F(SymbolicWalkTest, NumbersAreComparedAndChosen) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Int64s("five", {1}, {5}).Int64s("three", {1}, {3});
  builder.Node("Constant", {}, {"seven"}, {{"value_ints", Ints{7}}}).Node("Min", {"seven", "five"}, {"least"});
  builder.Node("Max", {"seven", "five"}, {"most"}).Node("Mod", {"seven", "three"}, {"left"});
  builder.Node("Less", {"five", "seven"}, {"less"}).Node("Where", {"less", "three", "five"}, {"chosen"});
  builder.Node("Concat", {"least", "most", "left", "chosen"}, {"to"}, {{"axis", int64_t{0}}});
  builder.Node("ConstantOfShape", {"to"}, {"y"});
  EXPECT_EQ(ShapeOf(builder, "y"), "[5,7,1,3]");
}

TEST_F(SymbolicWalkTest, WholeScalesAreExact) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, 10, -1}).Floats("twice", {4}, {1, 1, 2, 2}).Floats("near", {4}, {1, 1, 1.5f, 1});
  builder.Node("Resize", {"x", "", "twice"}, {"larger"}).Node("Resize", {"x", "", "near"}, {"rounded"});
  builder.Node("Resize", {"x", "", "twice"}, {"again"}).Node("Add", {"larger", "again"}, {"sum"});
  EXPECT_EQ(ShapeOf(builder, "larger").substr(0, 11), "[1*s0,3,20,");
  EXPECT_EQ(ShapeOf(builder, "larger"), ShapeOf(builder, "sum")) << "what is scaled alike is as large";
  EXPECT_NE(ShapeOf(builder, "rounded"), "[1*s0,3,15,1*s1]");
}

TEST_F(SymbolicWalkTest, WhatMayBroadcastIsNotTakenForOneOfTheTwo) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 4}).Input("z", {-1, -1, 4}).Input("one", {1, 4}).Node("Add", {"x", "z"}, {"sum"});
  builder.Node("Mul", {"x", "one"}, {"scaled"}).Node("Sigmoid", {"x"}, {"g"}).Node("Mul", {"x", "g"}, {"gated"});
  EXPECT_NE(ShapeOf(builder, "sum"), ShapeOf(builder, "x"));
  EXPECT_NE(ShapeOf(builder, "sum"), ShapeOf(builder, "z"));
  EXPECT_EQ(ShapeOf(builder, "scaled"), ShapeOf(builder, "x"));
  EXPECT_EQ(ShapeOf(builder, "gated"), ShapeOf(builder, "x"));
}

TEST_F(SymbolicWalkTest, NothingIsSaidOfWhatIsNotKnown) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 4}).Int64Input("to", {3}).Node("NonZero", {"x"}, {"places"});
  builder.Node("Reshape", {"x", "to"}, {"r"}).Node("Squeeze", {"x"}, {"s"}).Node("Relu", {"s"}, {"t"});
  EXPECT_EQ(ShapeOf(builder, "places"), "?");
  EXPECT_EQ(ShapeOf(builder, "r"), "[1*s2,1*s3,1*s4]") << "as many as the list has elements, and no more";
  EXPECT_EQ(ShapeOf(builder, "t"), "?");
}

}  // namespace
}  // namespace swizzle
