// The passes together; what each makes of a graph by itself is in golden/.
#include "model_loader/passes/passes.h"

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"
#include "kernels/format/whole_values.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/after_pass.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::After;
using testing::IsOk;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

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

TEST(PipelineTest, MakesAMobileBlockTwoConvolutions) {
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

// The weight of a convolution in INT8 whose channels are multiplied by factors: as it is once it is lowered.
Weight ScaledWeight(const std::vector<int8_t>& stored, const std::vector<float>& factors) {
  const auto channels = static_cast<int64_t>(factors.size());
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 2, 2}).Floats("scale", {}, {0.0173f}).Floats("f", {1, channels, 1, 1}, factors);
  onnx::TensorProto& weight = *builder.graph().add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::INT8);
  for (const int64_t dimension : {channels, int64_t{4}, int64_t{1}, int64_t{1}}) weight.add_dims(dimension);
  weight.set_raw_data(stored.data(), stored.size());
  builder.Node("QuantizeLinear", {"x", "scale"}, {"q"}).Node("DequantizeLinear", {"q", "scale"}, {"rounded"});
  builder.Node("DequantizeLinear", {"w", "scale"}, {"real"}).Node("Conv", {"rounded", "real"}, {"c"});
  builder.Node("Mul", {"c", "f"}, {"y"}).Output("y");
  Graph graph = *builder.Read();
  SWIZZLE_CHECK(RunPasses(graph).ok());
  const Network network = *Lower(std::move(graph));
  const auto conv = std::ranges::find(network.layers, Op::kConv, &Layer::op);
  return network.weights[static_cast<size_t>(conv->weight)];
}

TEST(FoldAffineTest, FactorsLeaveWholeNumbersWhatTheyAre) {
  const Weight weight =
      ScaledWeight({1, -127, 33, 0, 5, 0, 127, -128, 1, 2, 3, 4, 7, 7, 7, 7}, {0.7f, 1.37f, 0, -1.9f});
  const auto wholes = WholeValues(weight);  // nothing where a value is not exactly its whole number's
  ASSERT_TRUE(wholes);
  const std::vector<float> dense = weight.ToDense().values;
  EXPECT_FLOAT_EQ(dense[1], -127 * 0.0173f * 0.7f);
  EXPECT_EQ(dense[8], 0.0f);
  EXPECT_FLOAT_EQ(dense[12], -7 * 0.0173f * 1.9f);
}

TEST(FoldAffineTest, WhatHasNoNegativeBecomesReal) {
  EXPECT_TRUE(ScaledWeight({-128, 0, 0, 1}, {2.0f}).quantisation);
  EXPECT_TRUE(ScaledWeight({-127, 0, 0, 1}, {-2.0f}).quantisation);
  const Weight weight = ScaledWeight({-128, 0, 0, 1}, {-2.0f});
  EXPECT_FALSE(weight.quantisation);
  EXPECT_FLOAT_EQ(weight.ToDense().values[0], 256 * 0.0173f);
}

// Of a small weight, which all share, some that would be 64 MiB each.
TEST(ExpandTransposedTest, WeightsOfAFileDoNotBecomeAnyNumber) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 1, 1}).Floats("w", {1, 256, 1, 1}, std::vector<float>(256, 1.0f));
  for (int i = 0; i < 4; ++i) {
    const std::string y = "y" + std::to_string(i);
    builder.Node("ConvTranspose", {"x", "w"}, {y}, {{"strides", Ints{256, 256}}, {"output_padding", Ints{255, 255}}});
    builder.Output(y);
  }
  auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  const auto count = ExpandTransposed(*graph);
  ASSERT_THAT(count, IsOk());
  EXPECT_EQ(*count, 2);
}

TEST(ExpandTransposedTest, TwoMakeTheirBlocksAtOnce) {
  const auto blocks_of = [](int64_t outputs, int64_t pad) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 2, 3, 3}).Floats("w", {2, 8, 2, 2}, std::vector<float>(64, 1.0f));
    builder.Floats("v", {8, outputs, 2, 2}, std::vector<float>(static_cast<size_t>(outputs) * 32, 1.0f));
    builder.Node("ConvTranspose", {"x", "w"}, {"c"}, {{"strides", Ints{2, 2}}}).Node("Relu", {"c"}, {"r"});
    builder.Node("ConvTranspose", {"r", "v"}, {"y"}, {{"strides", Ints{2, 2}}, {"pads", Ints{pad, pad, pad, pad}}});
    auto graph = builder.Output("y").Read();
    EXPECT_THAT(graph, IsOk());
    EXPECT_THAT(ExpandTransposed(*graph), IsOk());
    Ints blocks;
    for (const Node& node : graph->nodes) {
      if (node.op == "DepthToSpace") blocks.push_back(std::get<int64_t>(node.attributes.at("blocksize")));
    }
    return blocks;
  };
  EXPECT_EQ(blocks_of(2, 0), (Ints{4}));
  EXPECT_EQ(blocks_of(4, 0), (Ints{2, 2})) << "it computes more than it reads";
  EXPECT_EQ(blocks_of(2, 1), (Ints{2, 2})) << "its blocks are not of one position each";
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
  EXPECT_THAT(RemoveNoOps(*graph), IsOk());
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

TEST(PipelineTest, ReportsEveryPass) {
  auto graph = MobileBlock().Read();
  ASSERT_THAT(graph, IsOk());
  const auto counts = RunPasses(*graph);
  ASSERT_THAT(counts, IsOk());
  const std::vector<std::pair<std::string, int>> expected = {
      {"resolve_constants", 0}, {"remove_no_ops", 0},       {"widen_constants", 0},     {"unround_products", 0},
      {"read_byte_inputs", 0},  {"recognise_written", 0},   {"expand_transposed", 0},   {"fold_transposes", 0},
      {"canonicalise", 0},      {"recognise_functions", 0}, {"recognise_depthwise", 1}, {"fold_pad", 1},
      {"fold_affine", 2},       {"lower_affine", 0},        {"fuse_residual", 1},       {"fuse_activation", 2}};
  EXPECT_EQ(*counts, expected);
}

// x -> a layer -> moves -> rounding -> a convolution, or a product.
OnnxBuilder RoundedBehindMoves(const std::string& maker, const std::string& reader, bool to_computed = false) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 4}).Floats("s", {}, {0.5f}).Int64s("plane", {4}, {0, 4, 2, 2}).Counting("w", {4, 4});
  builder.Counting("k", {1, 4, 1, 1}).Counting("v", {2, 3});
  if (to_computed) builder.Node("Shape", {"x"}, {"to"});
  builder.Node(maker, {"x", maker == "MatMul" ? "w" : "x"}, {"h"});
  builder.Node("Transpose", {"h"}, {"t"}, {{"perm", Ints{0, 2, 1}}})
      .Node("Reshape", {"t", to_computed ? "to" : "plane"}, {"p"});
  builder.Node("QuantizeLinear", {"p", "s"}, {"q"}).Node("DequantizeLinear", {"q", "s"}, {"r"});
  builder.Node(reader, {"r", reader == "Conv" ? "k" : "v"}, {"y"}).Output("y");
  return builder;
}

std::string OperatorsAfterHoisting(OnnxBuilder builder) {
  auto graph = builder.Read();
  EXPECT_THAT(graph, IsOk());
  EXPECT_THAT(HoistRoundings(*graph), IsOk());
  std::string operators;
  for (const Node& node : graph->nodes) operators += node.op + " ";
  return operators;
}

TEST(HoistRoundingsTest, WhatMakesTheValueMayEndInBytes) {
  EXPECT_EQ(OperatorsAfterHoisting(RoundedBehindMoves("MatMul", "Conv")),
            "MatMul QuantizeLinear DequantizeLinear Transpose Reshape Conv ");
  EXPECT_EQ(OperatorsAfterHoisting(RoundedBehindMoves("Add", "Conv")),
            "Add QuantizeLinear DequantizeLinear Transpose Reshape Conv ");
}

TEST(HoistRoundingsTest, TheyStayBehindMovesThatNoConvolutionReads) {
  EXPECT_EQ(OperatorsAfterHoisting(RoundedBehindMoves("MatMul", "MatMul")),
            "MatMul Transpose Reshape QuantizeLinear DequantizeLinear MatMul ");
}

TEST(HoistRoundingsTest, TheyStayBehindWhatOnlyPicks) {
  EXPECT_EQ(OperatorsAfterHoisting(RoundedBehindMoves("Concat", "Conv")),
            "Concat Transpose Reshape QuantizeLinear DequantizeLinear Conv ");
}

TEST(HoistRoundingsTest, TheyStayBehindAProductOfTwo) {
  OnnxBuilder builder = RoundedBehindMoves("MatMul", "Conv");
  builder.graph().mutable_node(0)->set_input(1, "x");
  EXPECT_EQ(OperatorsAfterHoisting(builder), "MatMul Transpose Reshape QuantizeLinear DequantizeLinear Conv ");
}

TEST(HoistRoundingsTest, TheyStayBehindMovesToShapesThatAreComputed) {
  EXPECT_EQ(OperatorsAfterHoisting(RoundedBehindMoves("MatMul", "Conv", true)),
            "Shape MatMul Transpose Reshape QuantizeLinear DequantizeLinear Conv ");
}

TEST(HoistRoundingsTest, TheyStayBehindWhatIsReadElsewhere) {
  OnnxBuilder builder = RoundedBehindMoves("MatMul", "Conv");
  builder.Output("p");
  EXPECT_EQ(OperatorsAfterHoisting(builder), "MatMul Transpose Reshape QuantizeLinear DequantizeLinear Conv ");
}

}  // namespace
}  // namespace swizzle
