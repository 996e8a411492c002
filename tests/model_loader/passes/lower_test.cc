#include "model_loader/passes/lower.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/format/csr.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/network_reference.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using testing::EvaluateNetwork;
using testing::IsOk;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

Network LowerAll(const OnnxBuilder& builder) {
  auto graph = builder.Read();
  EXPECT_THAT(graph, IsOk());
  EXPECT_THAT(RunPasses(*graph), IsOk());
  auto network = Lower(*std::move(graph));
  EXPECT_THAT(network, IsOk());
  return *std::move(network);
}

std::vector<Op> KindsOf(const Network& network) {
  std::vector<Op> kinds;
  for (const Layer& layer : network.layers) kinds.push_back(layer.op);
  return kinds;
}

TEST(LowerTest, FusedConvolution) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 3, 3}).Floats("w", {1, 1, 3, 3}, {0, 1, 0, 1, 2, 1, 0, 1, 0}).Floats("b", {1}, {-30});
  builder.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  builder.Node("Add", {"x", "c"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
  const Network network = LowerAll(builder);
  ASSERT_EQ(KindsOf(network), std::vector<Op>{Op::kConv});
  const Layer& layer = network.layers[0];
  EXPECT_EQ(layer.name, "c_node");
  EXPECT_TRUE(layer.epilogue.residual);
  EXPECT_EQ(layer.epilogue.low, 0.0f);
  EXPECT_EQ(layer.window().pad_left, 1);
  EXPECT_EQ(network.batch_size, 0);
  EXPECT_EQ(network.producer, "builder");
  EXPECT_THAT(network.inputs[0].dims, ElementsAre(1, 3, 3));
  EXPECT_THAT(network.outputs[0].dims, ElementsAre(1, 3, 3));
  // Each sum of neighbours plus twice the middle, less 30, plus the middle.
  const auto outputs = EvaluateNetwork(network, {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(0, 0, 0, 0, 5, 5, 3, 15, 11));
}

TEST(LowerTest, SameRowNeedsNoLayer) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6});
  builder.Node("GlobalAveragePool", {"x"}, {"p"}).Node("Flatten", {"p"}, {"f"}).Node("MatMul", {"f", "w"}, {"y"});
  const Network network = LowerAll(builder.Output("y").Output("f").Output("p"));
  EXPECT_EQ(KindsOf(network), (std::vector<Op>{Op::kAveragePool, Op::kConv}));
  EXPECT_THAT(network.outputs[1].dims, ElementsAre(2));
  EXPECT_THAT(network.outputs[2].dims, ElementsAre(2, 1, 1));
  EXPECT_EQ(network.outputs[1].value, network.outputs[2].value);
}

TEST(LowerTest, OtherReshapesAreLayers) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Int64s("to", {4}, {0, 4, 2, 4}).Node("Flatten", {"x"}, {"f"});
  const Network network = LowerAll(builder.Node("Reshape", {"x", "to"}, {"r"}).Output("f").Output("r"));
  EXPECT_EQ(KindsOf(network), (std::vector<Op>{Op::kReshape, Op::kReshape}));
  EXPECT_EQ(network.values[network.outputs[0].value].channels, 32);
  EXPECT_EQ(network.values[network.outputs[1].value].height, 2);
}

TEST(LowerTest, OutputsThatAreInputsAreCopied) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4, 4}).Node("Identity", {"x"}, {"y"}).Node("Relu", {"x"}, {"r"});
  builder.Node("Identity", {"r"}, {"again"});
  const Network network = LowerAll(builder.Output("y").Output("x").Output("r").Output("again"));
  EXPECT_EQ(KindsOf(network), std::vector<Op>(3, Op::kActivation));
  EXPECT_EQ(network.outputs[2].value, network.outputs[3].value);
  const std::vector<float> input(32, -1.0f);
  const auto outputs = EvaluateNetwork(network, {input}, 1);
  EXPECT_EQ(outputs[0], input);
  EXPECT_EQ(outputs[1], input);
  EXPECT_EQ(outputs[3], std::vector<float>(32, 0.0f));
}

TEST(LowerTest, FixedBatchIsPartOfThePorts) {
  OnnxBuilder builder;
  builder.Input("x", {3, 2, 4, 4}).Input("unread", {3, 7}).Node("Flatten", {"x"}, {"y"});
  const Network network = LowerAll(builder.Output("y"));
  EXPECT_EQ(network.batch_size, 3);
  EXPECT_THAT(network.inputs[0].dims, ElementsAre(3, 2, 4, 4));
  EXPECT_THAT(network.inputs[1].dims, ElementsAre(3, 7));
  EXPECT_THAT(network.outputs[0].dims, ElementsAre(3, 32));
}

TEST(LowerTest, RanksMapToChannelsHeightAndWidth) {
  OnnxBuilder builder;
  builder.Input("a", {-1})
      .Input("b", {-1, 2})
      .Input("c", {-1, 2, 3})
      .Input("d", {-1, 2, 3, 4})
      .Input("e", {-1, 2, 3, 4, 5});
  for (const char* name : {"a", "b", "c", "d", "e"})
    builder.Node("Relu", {name}, {std::string(name) + "y"}).Output(std::string(name) + "y");
  const Network network = LowerAll(builder);
  const auto extent = [&](int port) {
    const NetworkValue& value = network.values[network.inputs[port].value];
    return Ints{value.channels, value.height, value.width};
  };
  EXPECT_EQ(extent(0), (Ints{1, 1, 1}));
  EXPECT_EQ(extent(1), (Ints{2, 1, 1}));
  EXPECT_EQ(extent(2), (Ints{2, 1, 3}));
  EXPECT_EQ(extent(3), (Ints{2, 3, 4}));
  EXPECT_EQ(extent(4), (Ints{2, 3, 20}));
}

// Batch norm behind a pad behind a sum: nothing fuses, everything still computes.
TEST(LowerTest, UnfusedGraphsRun) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 1, 1, 2})
      .Int64s("pads", {8}, {0, 0, 0, 1, 0, 0, 0, 0})
      .Floats("k", {}, {3})
      .Floats("t", {}, {1});
  builder.Node("Add", {"x", "x"}, {"a"}).Node("Pad", {"a", "pads"}, {"p"}).Node("Relu", {"p"}, {"r"});
  builder.Node("Mul", {"r", "k"}, {"m"}).Node("Add", {"m", "t"}, {"y"}).Output("y").Output("p");
  const Network network = LowerAll(builder);
  const auto outputs = EvaluateNetwork(network, {{5, -7}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(1, 31, 1));
  EXPECT_THAT(outputs[1], ElementsAre(0, 10, -14));
}

// A Transpose to NHWC and one to NCHW, with the numbers that come out.
TEST(LowerTest, TransposesKeepTheirElements) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 1, 3});
  builder.Node("Transpose", {"x"}, {"c"}, {{"perm", Ints{0, 3, 1, 2}}});
  builder.Node("Transpose", {"x"}, {"l"}, {{"perm", Ints{0, 2, 3, 1}}});
  const Network network = LowerAll(builder.Output("c").Output("l"));
  const auto outputs = EvaluateNetwork(network, {{1, 2, 3, 4, 5, 6}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(outputs[1], ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(network.outputs[0].dims, ElementsAre(3, 2, 1));
  EXPECT_THAT(network.outputs[1].dims, ElementsAre(1, 3, 2));
}

// Two groups of two input channels, and of one and two output channels.
TEST(LowerTest, GroupsBecomeZeros) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 1, 1}).Floats("w", {2, 2, 1, 1}, {1, 2, 3, 4});
  builder.Floats("v", {4, 1, 1, 1}, {1, 2, 3, 4});
  builder.Node("Conv", {"x", "w"}, {"a"}, {{"group", int64_t{2}}});
  builder.Node("Conv", {"a", "v"}, {"y"}, {{"group", int64_t{2}}}).Output("a").Output("y");
  const Network network = LowerAll(builder);
  EXPECT_EQ(network.weights[0].format(), Format::kCsr);
  const auto outputs = EvaluateNetwork(network, {{5, 6, 7, 8}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(17, 53));
  EXPECT_THAT(outputs[1], ElementsAre(17, 34, 159, 212));
}

TEST(LowerTest, ConvolvesLines) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4}).Floats("w", {1, 2, 2}, {1, 10, 100, 1000}).Floats("d", {2, 1, 2}, {1, 2, 3, 4});
  builder.Node("Conv", {"x", "w"}, {"y"}, {{"pads", Ints{1, 0}}, {"strides", Ints{2}}}).Output("y");
  builder.Node("Conv", {"x", "d"}, {"z"}, {{"group", int64_t{2}}, {"dilations", Ints{3}}}).Output("z");
  const Network network = LowerAll(builder);
  EXPECT_THAT(network.outputs[0].dims, ElementsAre(1, 2));
  const auto outputs = EvaluateNetwork(network, {{1, 2, 3, 4, 5, 6, 7, 8}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(5010, 7632));
  EXPECT_THAT(outputs[1], ElementsAre(9, 47));
}

TEST(LowerTest, PoolsLines) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 4});
  builder.Node("MaxPool", {"x"}, {"y"}, {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}}).Output("y");
  builder.Node("AveragePool", {"x"}, {"z"}, {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}}).Output("z");
  const Network network = LowerAll(builder);
  EXPECT_THAT(network.outputs[0].dims, ElementsAre(2, 2));
  const auto outputs = EvaluateNetwork(network, {{1, 2, 3, 4, 5, 6, 7, 8}}, 1);
  EXPECT_THAT(outputs[0], ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(outputs[1], ElementsAre(1.5f, 2, 3, 3.5f, 5.5f, 6, 7, 7.5f));
}

// A model that says little may not make much.
TEST(LowerTest, RefusesTooManyZerosBetweenGroups) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 16384, 1, 1}).Counting("w", {16384, 2, 1, 1});
  builder.Node("Conv", {"x", "w"}, {"y"}, {{"group", int64_t{8192}}}).Output("y");
  auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(RunPasses(*graph).status().code(), StatusCode::kUnimplemented);
}

TEST(ChooseFormatTest, HalfZerosIsSparse) {
  EXPECT_EQ(ChooseFormat({2, 2, {1, 0, 0, 2}}).format(), Format::kCsr);
  EXPECT_EQ(ChooseFormat({2, 2, {0, 0, 0, 0}}).format(), Format::kCsr);
  EXPECT_EQ(ChooseFormat({2, 2, {1, 0, 3, 2}}).format(), Format::kDense);
}

TEST(ChooseFormatTest, DepthwiseStaysDense) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2, 2, 2}).Floats("w", {2, 1, 1, 1}, {0, 0}).Floats("v", {2, 2, 1, 1}, {0, 1, 0, 0});
  builder.Node("Conv", {"x", "w"}, {"d"}, {{"group", int64_t{2}}}).Node("Conv", {"d", "v"}, {"y"}).Output("y");
  const Network network = LowerAll(builder);
  EXPECT_EQ(network.weights[0].format(), Format::kDense);
  EXPECT_EQ(network.weights[1].format(), Format::kCsr);
}

}  // namespace
}  // namespace swizzle
