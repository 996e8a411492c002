// What each pass makes of a small graph, as text.
#include "model_loader/passes/passes.h"

#include <limits>

#include "gtest/gtest.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/after_pass.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::After;
using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

TEST(ResolveIdentityTest, ConstantsAndIdentitiesDisappear) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Floats("ratio", {}, {0.5f}).Floats("w", {2}, {3, 4});
  builder.Node("Identity", {"w"}, {"w2"}).Node("Identity", {"w2"}, {"w3"});
  builder.Node("Constant", {}, {"c"}, {{"value_float", 6.0f}});
  builder.Node("Dropout", {"x", "ratio"}, {"d", "mask"});
  builder.Node("Mul", {"d", "w3"}, {"m"}).Node("Add", {"m", "c"}, {"a"}).Node("Identity", {"a"}, {"y"});
  builder.Output("y").Output("a");
  EXPECT_EQ(After("resolve_identity", 5, builder), R"(
input %x: FP32[N,2]
constant %w: FP32[2] = {3,4}
constant %c: FP32[] = {6}
%m = Mul(%x,%w) "m_node" -> FP32[?]
%a = Add(%m,%c) "a_node" -> FP32[?]
output "y" = %a
output "a" = %a
)");
}

TEST(ResolveIdentityTest, ReadsEveryKindOfConstant) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2});
  builder.Node("Constant", {}, {"a"}, {{"value", Tensor::Floats({2}, std::vector<float>{1, 2})}});
  builder.Node("Constant", {}, {"b"}, {{"value_floats", std::vector<float>{3, 4}}});
  builder.Node("Constant", {}, {"i"}, {{"value_int", int64_t{5}}});
  builder.Node("Constant", {}, {"j"}, {{"value_ints", Ints{6, 7}}});
  builder.Node("Concat", {"i", "j"}, {"ij"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"x", "ij"}, {"r"}).Node("Add", {"r", "a"}, {"s"}).Node("Add", {"s", "b"}, {"y"}).Output("y");
  EXPECT_EQ(After("resolve_identity", 4, builder), R"(
input %x: FP32[N,2]
constant %a: FP32[2] = {1,2}
constant %b: FP32[2] = {3,4}
constant %i: INT64[] = {5}
constant %j: INT64[2] = {6,7}
%ij = Concat(%i,%j) {axis=0} "ij_node" -> FP32[?]
%r = Reshape(%x,%ij) "r_node" -> FP32[?]
%s = Add(%r,%a) "s_node" -> FP32[?]
%y = Add(%s,%b) "y_node" -> FP32[?]
output "y" = %y
)");
}

TEST(CanonicaliseTest, FoldsShapeArithmetic) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 3, 4}).Int64s("zero", {}, {0}).Int64s("axes", {1}, {0}).Int64s("rest", {1}, {-1});
  builder.Node("Relu", {"x"}, {"r"}).Node("Shape", {"r"}, {"s"});
  builder.Node("Gather", {"s", "zero"}, {"b"}).Node("Unsqueeze", {"b", "axes"}, {"u"});
  builder.Node("Concat", {"u", "rest"}, {"t"}, {{"axis", int64_t{0}}}).Node("Reshape", {"r", "t"}, {"y"}).Output("y");
  EXPECT_EQ(After("canonicalise", 4, builder), R"(
input %x: FP32[N,2,3,4]
%r = swizzle.Clamp(%x) {high=inf,low=0} "r_node" -> FP32[N,2,3,4]
%y = swizzle.Reshape(%r) "y_node" -> FP32[N,24]
output "y" = %y
)");
}

// Folding would walk the rows, of which there are as many as the file says.
TEST(CanonicaliseTest, LeavesEmptyConstantsOfHugeExtentsAlone) {
  const Shape huge = {int64_t{1} << 50, 0};
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Int64s("a", huge, {}).Int64s("b", huge, {});
  builder.Node("Concat", {"a", "b"}, {"y"}, {{"axis", int64_t{1}}}).Output("y");
  EXPECT_TRUE(After("canonicalise", 0, builder).starts_with("UNIMPLEMENTED: Concat node 'y_node'"));
}

TEST(CanonicaliseTest, LinearLayersBecomeConvolutions) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}).Floats("b", {3}, {1, 2, 3});
  builder.Floats("v", {2, 3}, {1, 2, 3, 4, 5, 6});
  builder.Node("MatMul", {"x", "w"}, {"m"}).Node("Add", {"b", "m"}, {"a"});
  builder.Node("Gemm", {"a", "v", "b"}, {"y"}, {{"transB", int64_t{1}}, {"alpha", 2.0f}, {"beta", 0.5f}});
  EXPECT_EQ(After("canonicalise", 0, builder.Output("a")), R"(
input %x: FP32[N,2]
constant %m_node.weight: FP32[3,2,1,1] = {1,4,2,5,3,6}
constant %a_node.scale: FP32[3] = {1,1,1}
constant %a_node.shift: FP32[3] = {1,2,3}
%m = swizzle.Conv(%x,%m_node.weight) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "m_node" -> FP32[N,3]
%a = swizzle.Affine(%m,%a_node.scale,%a_node.shift) "a_node" -> FP32[N,3]
output "a" = %a
)");
}

TEST(CanonicaliseTest, GemmScalesWeightAndBias) {
  OnnxBuilder builder;
  builder.Input("x", {4, 3}).Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}).Floats("b", {2}, {10, 20});
  builder.Node("Gemm", {"x", "w", "b"}, {"y"}, {{"transB", int64_t{1}}, {"alpha", 2.0f}, {"beta", 0.5f}});
  EXPECT_EQ(After("canonicalise", 0, builder.Output("y")), R"(
input %x: FP32[4,3]
constant %y_node.weight: FP32[2,3,1,1] = {2,4,6,8,10,12}
constant %y_node.bias: FP32[2] = {5,10}
%y = swizzle.Conv(%x,%y_node.weight,%y_node.bias) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "y_node" -> FP32[4,2]
output "y" = %y
)");
}

TEST(CanonicaliseTest, BatchNormBecomesScaleAndShift) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 2, 2})
      .Floats("s", {1}, {6})
      .Floats("t", {1}, {1})
      .Floats("m", {1}, {4})
      .Floats("v", {1}, {8});
  builder.Node("BatchNormalization", {"x", "s", "t", "m", "v"}, {"y"}, {{"epsilon", 1.0f}}).Output("y");
  EXPECT_EQ(After("canonicalise", 0, builder), R"(
input %x: FP32[N,1,2,2]
constant %y_node.scale: FP32[1] = {2}
constant %y_node.shift: FP32[1] = {-7}
%y = swizzle.Affine(%x,%y_node.scale,%y_node.shift) "y_node" -> FP32[N,1,2,2]
output "y" = %y
)");
}

TEST(CanonicaliseTest, MeansAndGlobalPoolsAreWindowsOfThePlane) {
  for (const char* op : {"GlobalAveragePool", "ReduceMean"}) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 2, 5, 7});
    if (std::string(op) == "ReduceMean") {
      builder.Node(op, {"x"}, {"y"}, {{"axes", Ints{-2, 3}}, {"keepdims", int64_t{1}}});
    } else {
      builder.Node(op, {"x"}, {"y"});
    }
    EXPECT_EQ(After("canonicalise", 0, builder.Output("y")), R"(
input %x: FP32[N,2,5,7]
%y = swizzle.AveragePool(%x) {dilations=[1,1],kernel_shape=[5,7],pads=[0,0,0,0],strides=[1,1]} "y_node" -> FP32[N,2,1,1]
output "y" = %y
)");
  }
}

// Depthwise and ordinary convolution, each behind a pad, with batch norm and ReLU6.
OnnxBuilder MobileBlock() {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4})
      .Int64s("pads", {8}, {0, 0, 0, 0, 0, 0, 1, 1})
      .Floats("zero", {}, {0})
      .Floats("six", {}, {6});
  builder.Counting("dw", {2, 1, 3, 3}).Floats("pw", {2, 2, 1, 1}, {1, 2, 3, 4});
  builder.Floats("s", {2}, {2, 3}).Floats("t", {2}, {4, 5}).Floats("m", {2}, {0, 0}).Floats("v", {2}, {1, 1});
  const auto batch_norm = [&](const std::string& x, const std::string& y) {
    builder.Node("BatchNormalization", {x, "s", "t", "m", "v"}, {y}, {{"epsilon", 0.0f}});
  };
  builder.Node("Pad", {"x", "pads"}, {"p"});
  builder.Node("Conv", {"p", "dw"}, {"c1"}, {{"group", int64_t{2}}, {"strides", Ints{2, 2}}});
  batch_norm("c1", "b1");
  builder.Node("Clip", {"b1", "zero", "six"}, {"r1"}).Node("Conv", {"r1", "pw"}, {"c2"});
  batch_norm("c2", "b2");
  builder.Node("Add", {"b2", "r1"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
  return builder;
}

TEST(RecogniseDepthwiseTest, ByGroups) {
  const std::string text = After("recognise_depthwise", 1, MobileBlock());
  EXPECT_NE(text.find("%c1 = swizzle.DepthwiseConv(%p,%dw) {dilations=[1,1],kernel_shape=[3,3],pads=[0,0,0,0],"
                      "strides=[2,2]} \"c1_node\" -> FP32[N,2,2,2]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("%c2 = swizzle.Conv("), std::string::npos) << text;
}

TEST(FoldPadTest, GoesIntoTheConvolution) {
  const std::string text = After("fold_pad", 1, MobileBlock());
  EXPECT_NE(text.find("%c1 = swizzle.DepthwiseConv(%x,%dw) {dilations=[1,1],kernel_shape=[3,3],pads=[0,0,1,1],"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("Pad("), std::string::npos) << text;
}

TEST(FoldAffineTest, GoesIntoTheConvolutionBefore) {
  EXPECT_EQ(After("fold_affine", 2, MobileBlock()), R"(
input %x: FP32[N,2,4,4]
constant %dw: FP32[2,1,3,3]
constant %pw: FP32[2,2,1,1] = {2,4,9,12}
constant %c1_node.bias: FP32[2] = {4,5}
constant %c2_node.bias: FP32[2] = {4,5}
%b1 = swizzle.DepthwiseConv(%x,%dw,%c1_node.bias) {dilations=[1,1],kernel_shape=[3,3],pads=[0,0,1,1],strides=[2,2]} "c1_node" -> FP32[N,2,2,2]
%r1 = swizzle.Clamp(%b1) {high=6,low=0} "r1_node" -> FP32[N,2,2,2]
%b2 = swizzle.Conv(%r1,%pw,%c2_node.bias) {dilations=[1,1],kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "c2_node" -> FP32[N,2,2,2]
%a = swizzle.Add(%b2,%r1) "a_node" -> FP32[N,2,2,2]
%y = swizzle.Clamp(%a) {high=inf,low=0} "y_node" -> FP32[N,2,2,2]
output "y" = %y
)");
}

TEST(FuseResidualTest, AddsInTheEpilogue) {
  EXPECT_EQ(After("fuse_residual", 1, MobileBlock()), R"(
input %x: FP32[N,2,4,4]
constant %dw: FP32[2,1,3,3]
constant %pw: FP32[2,2,1,1] = {2,4,9,12}
constant %c1_node.bias: FP32[2] = {4,5}
constant %c2_node.bias: FP32[2] = {4,5}
%b1 = swizzle.DepthwiseConv(%x,%dw,%c1_node.bias) {dilations=[1,1],kernel_shape=[3,3],pads=[0,0,1,1],strides=[2,2]} "c1_node" -> FP32[N,2,2,2]
%r1 = swizzle.Clamp(%b1) {high=6,low=0} "r1_node" -> FP32[N,2,2,2]
%a = swizzle.Conv(%r1,%pw,%c2_node.bias,%r1) {dilations=[1,1],kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "c2_node" -> FP32[N,2,2,2]
%y = swizzle.Clamp(%a) {high=inf,low=0} "y_node" -> FP32[N,2,2,2]
output "y" = %y
)");
}

TEST(FuseActivationTest, ClampsInTheEpilogue) {
  EXPECT_EQ(After("fuse_activation", 2, MobileBlock()), R"(
input %x: FP32[N,2,4,4]
constant %dw: FP32[2,1,3,3]
constant %pw: FP32[2,2,1,1] = {2,4,9,12}
constant %c1_node.bias: FP32[2] = {4,5}
constant %c2_node.bias: FP32[2] = {4,5}
%r1 = swizzle.DepthwiseConv(%x,%dw,%c1_node.bias) {dilations=[1,1],high=6,kernel_shape=[3,3],low=0,pads=[0,0,1,1],strides=[2,2]} "c1_node" -> FP32[N,2,2,2]
%y = swizzle.Conv(%r1,%pw,%c2_node.bias,%r1) {dilations=[1,1],high=inf,kernel_shape=[1,1],low=0,pads=[0,0,0,0],strides=[1,1]} "c2_node" -> FP32[N,2,2,2]
output "y" = %y
)");
}

TEST(FoldPadTest, WhatNothingAbsorbsBecomesAConvolution) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Int64s("pads", {8}, {0, 0, 1, 2, 0, 0, 3, 4}).Node("Pad", {"x", "pads"}, {"y"});
  EXPECT_EQ(After("fold_pad", 0, builder.Output("y")), R"(
input %x: FP32[N,2,4,4]
constant %y_node.weight: FP32[2,1,1,1] = {1,1}
%y = swizzle.DepthwiseConv(%x,%y_node.weight) {dilations=[1,1],kernel_shape=[1,1],pads=[1,2,3,4],strides=[1,1]} "y_node" -> FP32[N,2,8,10]
output "y" = %y
)");
}

// Pad by `fill`, then a 3x3 pool. Whether the pad goes into the pool's window.
bool PoolAbsorbs(const char* op, float fill, bool positive, const std::map<std::string, Attribute>& attributes = {}) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Int64s("pads", {8}, {0, 0, 1, 1, 0, 0, 1, 1}).Floats("fill", {}, {fill});
  builder.Node(positive ? "Relu" : "Identity", {"x"}, {"r"}).Node("Pad", {"r", "pads", "fill"}, {"p"});
  std::map<std::string, Attribute> all = attributes;
  all["kernel_shape"] = Ints{3, 3};
  auto graph = builder.Node(op, {"p"}, {"y"}, all).Output("y").Read();
  EXPECT_THAT(graph, IsOk());
  EXPECT_THAT(ResolveIdentity(*graph), IsOk());
  EXPECT_THAT(Canonicalise(*graph), IsOk());
  const auto count = FoldPad(*graph);
  return count.ok() && *count == 1;
}

TEST(FoldPadTest, GoesIntoPoolsOnlyWhereExact) {
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(PoolAbsorbs("MaxPool", kLowest, false));
  EXPECT_TRUE(PoolAbsorbs("MaxPool", 0.0f, true)) << "nothing is below the padding";
  EXPECT_FALSE(PoolAbsorbs("MaxPool", 0.0f, false));
  EXPECT_FALSE(PoolAbsorbs("MaxPool", 1.0f, true));
  EXPECT_TRUE(PoolAbsorbs("AveragePool", 0.0f, false));
  EXPECT_FALSE(PoolAbsorbs("AveragePool", 1.0f, false));
  const Attribute pads = Ints{1, 1, 1, 1};
  EXPECT_FALSE(PoolAbsorbs("AveragePool", 0.0f, false, {{"pads", pads}}));
  EXPECT_FALSE(PoolAbsorbs("MaxPool", kLowest, false, {{"pads", Ints{2, 2, 2, 2}}})) << "a window in the padding";
}

TEST(FoldPadTest, CountsTheZerosItTookOver) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Int64s("pads", {8}, {0, 0, 1, 1, 0, 0, 1, 1}).Node("Pad", {"x", "pads"}, {"p"});
  builder.Node("AveragePool", {"p"}, {"y"}, {{"kernel_shape", Ints{3, 3}}}).Output("y");
  EXPECT_EQ(After("fold_pad", 1, builder), R"(
input %x: FP32[N,2,4,4]
%y = swizzle.AveragePool(%x) {count_include_pad=1,dilations=[1,1],kernel_shape=[3,3],pads=[1,1,1,1],strides=[1,1]} "y_node" -> FP32[N,2,4,4]
output "y" = %y
)");
}

// (x * 2 + 1) -> conv 1x1 by weights 3 and 4, with or without padding.
OnnxBuilder NormalisedConv(int64_t pad) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4})
      .Floats("two", {}, {2})
      .Floats("shift", {1, 2, 1, 1}, {1, 10})
      .Floats("w", {1, 2, 1, 1}, {3, 4});
  builder.Node("Mul", {"x", "two"}, {"m"}).Node("Add", {"m", "shift"}, {"a"});
  builder.Node("Conv", {"a", "w"}, {"y"}, {{"pads", Ints{pad, pad, pad, pad}}}).Output("y");
  return builder;
}

TEST(FoldAffineTest, GoesIntoTheConvolutionAfter) {
  EXPECT_EQ(After("fold_affine", 2, NormalisedConv(0)), R"(
input %x: FP32[N,2,4,4]
constant %w: FP32[1,2,1,1] = {6,8}
constant %y_node.bias: FP32[1] = {43}
%y = swizzle.Conv(%x,%w,%y_node.bias) {dilations=[1,1],kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "y_node" -> FP32[N,1,4,4]
output "y" = %y
)");
}

TEST(FoldAffineTest, StopsAtPadding) {
  EXPECT_EQ(After("lower_affine", 1, NormalisedConv(1)), R"(
input %x: FP32[N,2,4,4]
constant %w: FP32[1,2,1,1] = {3,4}
constant %a_node.shift: FP32[2] = {1,10}
constant %a_node.weight: FP32[2,1,1,1] = {2,2}
%a = swizzle.DepthwiseConv(%x,%a_node.weight,%a_node.shift) {dilations=[1,1],kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "a_node" -> FP32[N,2,4,4]
%y = swizzle.Conv(%a,%w) {dilations=[1,1],kernel_shape=[1,1],pads=[1,1,1,1],strides=[1,1]} "y_node" -> FP32[N,1,6,6]
output "y" = %y
)");
}

TEST(FoldAffineTest, ScaleAlonePassesPadding) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 4, 4}).Floats("two", {}, {2}).Floats("w", {1, 1, 1, 1}, {3});
  builder.Node("Mul", {"two", "x"}, {"m"}).Node("Conv", {"m", "w"}, {"y"}, {{"pads", Ints{1, 1, 1, 1}}}).Output("y");
  EXPECT_NE(After("fold_affine", 1, builder).find("constant %w: FP32[1,1,1,1] = {6}\n"), std::string::npos);
}

TEST(FoldAffineTest, LeavesASharedWeightAlone) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 4, 4}).Floats("w", {1, 1, 1, 1}, {3}).Floats("two", {}, {2});
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("Mul", {"a", "two"}, {"b"}).Node("Conv", {"b", "w"}, {"y"}).Output("y");
  EXPECT_EQ(After("fold_affine", 1, builder), R"(
input %x: FP32[N,1,4,4]
constant %w: FP32[1,1,1,1] = {3}
constant %a_node.bias: FP32[1] = {0}
constant %w: FP32[1,1,1,1] = {6}
%b = swizzle.Conv(%x,%w,%a_node.bias) {dilations=[1,1],kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "a_node" -> FP32[N,1,4,4]
%y = swizzle.Conv(%b,%w) {dilations=[1,1],kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "y_node" -> FP32[N,1,4,4]
output "y" = %y
)");
}

// conv(x) is read by the affine and by the output, so neither may change it.
TEST(FoldAffineTest, LeavesAConvolutionWithOtherReadersAlone) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 4, 4}).Floats("w", {1, 1, 1, 1}, {3}).Floats("two", {}, {2});
  builder.Node("Conv", {"x", "w"}, {"a"}).Node("Mul", {"a", "two"}, {"y"}).Output("y").Output("a");
  EXPECT_NE(After("fold_affine", 0, builder).find("swizzle.Affine"), std::string::npos);
}

TEST(FoldAffineTest, DropsWhatDoesNothing) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Floats("zero", {}, {0}).Floats("one", {2}, {1, 1});
  builder.Node("Add", {"x", "zero"}, {"a"}).Node("Mul", {"a", "one"}, {"b"}).Node("Relu", {"b"}, {"y"}).Output("y");
  EXPECT_EQ(After("fold_affine", 2, builder), R"(
input %x: FP32[N,2]
%y = swizzle.Clamp(%x) {high=inf,low=0} "y_node" -> FP32[N,2]
output "y" = %y
)");
}

// Two convolutions meet in a sum: the later one takes the other's result, wherever it stands in the sum.
TEST(FuseResidualTest, LaterConvolutionTakesTheSum) {
  for (const bool swapped : {false, true}) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 1, 4, 4}).Floats("w", {1, 1, 1, 1}, {3});
    builder.Node("Conv", {"x", "w"}, {"a"}).Node("Conv", {"x", "w"}, {"b"});
    builder.Node("Add", {swapped ? "b" : "a", swapped ? "a" : "b"}, {"y"}).Output("y");
    const std::string text = After("fuse_residual", 1, builder);
    EXPECT_NE(text.find("%y = swizzle.Conv(%x,%w,_,%a) "), std::string::npos) << text;
    EXPECT_NE(text.find("\"b_node\""), std::string::npos) << text;
  }
}

TEST(FuseResidualTest, LeavesSumsThatItMust) {
  const auto sum = [](const std::vector<std::string>& operands, bool output_too) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 1, 4, 4}).Floats("w", {1, 1, 1, 1}, {3});
    builder.Node("Conv", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"r"}).Node("Conv", {"x", "w"}, {"c"});
    builder.Node("Add", operands, {"y"}).Output("y");
    if (output_too) builder.Output(operands[0]);
    return After("fuse_residual", 0, builder);
  };
  EXPECT_NE(sum({"r", "x"}, false).find("swizzle.Add(%r,%x)"), std::string::npos) << "clamped before the sum";
  EXPECT_NE(sum({"c", "x"}, true).find("swizzle.Add(%c,%x)"), std::string::npos) << "its sum is an output";
  EXPECT_NE(sum({"c", "c"}, false).find("swizzle.Add(%c,%c)"), std::string::npos) << "read twice";
}

TEST(FuseActivationTest, NestsBounds) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Floats("low", {}, {2}).Floats("high", {}, {3});
  builder.Node("Relu", {"x"}, {"a"})
      .Node("Clip", {"a", "", "high"}, {"b"})
      .Node("Clip", {"b", "low"}, {"y"})
      .Output("y");
  EXPECT_EQ(After("fuse_activation", 2, builder), R"(
input %x: FP32[N,2]
%y = swizzle.Clamp(%x) {high=3,low=2} "a_node" -> FP32[N,2]
output "y" = %y
)");
}

TEST(FuseActivationTest, LeavesAnOutputUnclamped) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Floats("w", {2, 2}, {1, 2, 3, 4});
  builder.Node("MatMul", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("a").Output("y");
  EXPECT_NE(After("fuse_activation", 0, builder).find("%y = swizzle.Clamp(%a)"), std::string::npos);
}

TEST(PipelineTest, ReportsEveryPass) {
  auto graph = MobileBlock().Read();
  ASSERT_THAT(graph, IsOk());
  const auto counts = RunPasses(*graph);
  ASSERT_THAT(counts, IsOk());
  const std::vector<std::pair<std::string, int>> expected = {
      {"resolve_identity", 0},    {"fold_transposes", 0}, {"canonicalise", 0}, {"recognise_functions", 0},
      {"recognise_depthwise", 1}, {"fold_pad", 1},        {"fold_affine", 2},  {"lower_affine", 0},
      {"fuse_residual", 1},       {"fuse_activation", 2}};
  EXPECT_EQ(*counts, expected);
}

}  // namespace
}  // namespace swizzle
