// Transposes around convolutions: those that cancel, those that move, those that stay.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/passes/lower.h"
#include "tests/support/after_pass.h"
#include "tests/support/network_reference.h"

namespace swizzle {
namespace {

using testing::After;
using ::testing::ElementsAre;
using testing::IsOk;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

const std::map<std::string, Attribute> kToNhwc = {{"perm", Ints{0, 2, 3, 1}}};
const std::map<std::string, Attribute> kToNchw = {{"perm", Ints{0, 3, 1, 2}}};

// x [N,2,4,4], and t, the same as NHWC.
OnnxBuilder Start(int64_t opset = 17) {
  OnnxBuilder builder(opset);
  builder.Input("x", {-1, 2, 4, 4}).Node("Transpose", {"x"}, {"t"}, kToNhwc);
  return builder;
}

TEST(FoldTransposesTest, PairsCancel) {
  EXPECT_EQ(After("fold_transposes", 1,
                  Start().Node("Transpose", {"t"}, {"u"}, kToNchw).Node("Relu", {"u"}, {"y"}).Output("y")),
            R"(
input %x: FP32[N,2,4,4]
%y = Relu(%x) "y_node" -> FP32[?]
output "y" = %y
)");
}

TEST(FoldTransposesTest, MovesThroughElementwiseOperators) {
  OnnxBuilder builder = Start();
  builder.Floats("bias", {2}, {3, 4}).Floats("six", {}, {6}).Int64s("pads", {8}, {0, 1, 2, 0, 0, 3, 4, 0});
  builder.Node("Add", {"bias", "t"}, {"a"}).Node("Clip", {"a", "", "six"}, {"c"}).Node("Mul", {"c", "a"}, {"m"});
  builder.Node("Pad", {"m", "pads"}, {"p"}).Node("Softmax", {"p"}, {"s"}, {{"axis", int64_t{-1}}});
  builder.Node("Transpose", {"s"}, {"y"}, kToNchw).Output("y");
  EXPECT_EQ(After("fold_transposes", 6, builder), R"(
input %x: FP32[N,2,4,4]
constant %six: FP32[] = {6}
constant %bias: FP32[1,2,1,1] = {3,4}
constant %p_node.pads: INT64[8] = {0,0,1,2,0,0,3,4}
%a = Add(%bias,%x) "a_node" -> FP32[?]
%c = Clip(%a,_,%six) "c_node" -> FP32[?]
%m = Mul(%c,%a) "m_node" -> FP32[?]
%p = Pad(%m,%p_node.pads) "p_node" -> FP32[?]
%s = Softmax(%p) {axis=1} "s_node" -> FP32[?]
output "y" = %s
)");
}

TEST(FoldTransposesTest, MeansTakeTheSourcesAxes) {
  for (const bool keep : {false, true}) {
    OnnxBuilder builder = Start(18);
    builder.Int64s("axes", {2}, {1, -2});
    builder.Node("ReduceMean", {"t", "axes"}, {"y"}, {{"keepdims", int64_t{keep}}}).Output("y");
    const std::string text = After("fold_transposes", 1, builder);
    EXPECT_NE(text.find("ReduceMean(%x) {axes=[2,3]"), std::string::npos) << text;
    EXPECT_EQ(text.find("Transpose") != std::string::npos, keep) << text;
  }
}

TEST(FoldTransposesTest, StaysBeforeWhatNeedsIt) {
  EXPECT_EQ(After("fold_transposes", 1,
                  Start().Node("Relu", {"t"}, {"r"}).Node("Flatten", {"r"}, {"y"}).Output("y").Output("r")),
            R"(
input %x: FP32[N,2,4,4]
%r = Relu(%x) "r_node" -> FP32[?]
%r = Transpose(%r) {perm=[0,2,3,1]} "r_node.transpose" -> FP32[?]
%y = Flatten(%r) "y_node" -> FP32[?]
output "y" = %y
output "r" = %r
)");
}

TEST(FoldTransposesTest, InputsAreTransposedBeforeTheirNormalisation) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 4, 2}).Floats("mean", {2}, {3, 4}).Int64s("pads", {8}, {0, 1, 2, 0, 0, 3, 4, 0});
  builder.Node("Sub", {"x", "mean"}, {"s"}).Node("Pad", {"s", "pads"}, {"p"}).Node("Transpose", {"p"}, {"y"}, kToNchw);
  EXPECT_EQ(After("fold_transposes", 3, builder.Output("y").Output("x")), R"(
input %x: FP32[N,4,4,2]
constant %mean: FP32[1,2,1,1] = {3,4}
constant %p_node.pads: INT64[8] = {0,0,1,2,0,0,3,4}
%x.nchw = Transpose(%x) {perm=[0,3,1,2]} "x.nchw" -> FP32[?]
%s = Sub(%x.nchw,%mean) "s_node" -> FP32[?]
%p = Pad(%s,%p_node.pads) "p_node" -> FP32[?]
output "y" = %p
output "x" = %x
)");
}

TEST(FoldTransposesTest, LeavesWhatItCannotMoveThrough) {
  const auto text = [](OnnxBuilder builder) { return After("fold_transposes", 0, builder.Output("y")); };
  EXPECT_NE(text(Start().Counting("k", {4, 1, 2}).Node("Add", {"t", "k"}, {"y"})).find("Add(%t,%k)"), std::string::npos)
      << "a constant of two dimensions";
  EXPECT_NE(text(Start().Node("Add", {"t", "x"}, {"y"})).find("Add(%t,%x)"), std::string::npos) << "an activation";
  EXPECT_NE(text(Start(12).Node("Softmax", {"t"}, {"y"}, {{"axis", int64_t{3}}})).find("Softmax(%t)"),
            std::string::npos)
      << "several dimensions together";
  EXPECT_NE(text(Start().Node("ReduceMean", {"t"}, {"y"}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}))
                .find("ReduceMean(%t)"),
            std::string::npos)
      << "dimensions are left out of order";
}

TEST(CanonicaliseTest, TransposesBecomeReshapesOrMatrices) {
  EXPECT_NE(
      After("canonicalise", 0, Start().Output("t")).find("swizzle.Transpose(%x) {rows=2} \"t_node\" -> FP32[N,4,4,2]"),
      std::string::npos);
  OnnxBuilder pooled;
  pooled.Input("x", {-1, 2, 4, 4}).Node("GlobalAveragePool", {"x"}, {"p"}).Node("Transpose", {"p"}, {"y"}, kToNhwc);
  EXPECT_NE(After("canonicalise", 0, pooled.Output("y")).find("swizzle.Reshape(%p) \"y_node\" -> FP32[N,1,1,2]"),
            std::string::npos);
}

// Both ways, with the numbers that come out.
TEST(LowerTest, TransposesKeepTheirElements) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 1, 3}).Node("Transpose", {"x"}, {"c"}, kToNchw).Node("Transpose", {"x"}, {"l"}, kToNhwc);
  auto graph = builder.Output("c").Output("l").Read();
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(RunPasses(*graph), IsOk());
  const auto network = Lower(*std::move(graph));
  ASSERT_THAT(network, IsOk());
  const auto outputs = testing::EvaluateNetwork(*network, {{1, 2, 3, 4, 5, 6}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(outputs[1], ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(network->outputs[0].dims, ElementsAre(3, 2, 1));
  EXPECT_THAT(network->outputs[1].dims, ElementsAre(1, 3, 2));
}

}  // namespace
}  // namespace swizzle
