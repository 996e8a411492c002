#include "model_loader/expansions/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loader/interpreter/operators/run_node.h"
#include "tests/support/status_matchers.h"

namespace swizzle::expansions {
namespace {

using interpreter::Execute;
using interpreter::Floats;
using interpreter::Values;
using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Not;
using ::testing::Pointwise;

constexpr auto kMissing = StatusCode::kUnimplemented;

std::vector<std::string> OperatorsOf(const Graph& graph) {
  std::vector<std::string> operators;
  for (const Node& node : graph.nodes) operators.push_back(node.domain + node.op);
  return operators;
}

std::vector<float> ValuesFrom(const OnnxBuilder& builder, const std::vector<Tensor>& inputs) {
  const auto outputs = Execute(builder, inputs);
  EXPECT_THAT(outputs, IsOk());
  return outputs.ok() ? Values((*outputs)[0]) : std::vector<float>();
}

OnnxBuilder Microsoft(const std::string& op, const Shape& shape, const std::vector<std::string>& inputs,
                      const std::map<std::string, Attribute>& attributes = {}, int64_t opset = 17) {
  OnnxBuilder builder(opset);
  builder.Input("x", shape).MicrosoftNode(op, inputs, {"y"}, attributes).Output("y");
  return builder;
}

TEST(ExpandTest, PlansSeeWhatAFusedConvolutionIsMadeOf) {
  OnnxBuilder builder =
      Microsoft("FusedConv", {-1, 2, 4, 4}, {"x", "w", "b"}, {{"activation", "LeakyRelu"}, {"alpha", 1.0f}});
  builder.Counting("w", {3, 2, 3, 3}).Counting("b", {3});
  auto& attributes = *builder.graph().mutable_node(0)->mutable_attribute();
  attributes.RemoveLast();  // alpha is none of its attributes
  auto& parameters = *builder.graph().mutable_node(0)->add_attribute();
  parameters.set_name("activation_params");
  parameters.set_type(onnx::AttributeProto::FLOATS);
  parameters.add_floats(0.25f);
  const auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(OperatorsOf(*graph), ElementsAre("Conv", "LeakyRelu"));
  EXPECT_EQ(graph->nodes[1].name, "y_node");
  EXPECT_EQ(std::get<float>(graph->nodes[1].attributes.at("alpha")), 0.25f);
}

TEST(ExpandTest, AnActivationThatIsNotKnownIsNamed) {
  OnnxBuilder builder = Microsoft("FusedGemm", {-1, 4}, {"x", "w"}, {{"activation", "Wavy"}});
  builder.Counting("w", {4, 2});
  EXPECT_THAT(builder.Read(), IsError(kMissing, "FusedGemm node 'y_node': its activation 'Wavy' is not supported"));
}

TEST(ExpandTest, ProductsAreTurnedWhereTheRankIsKnown) {
  OnnxBuilder builder = Microsoft("FusedMatMul", {-1, 2, 3}, {"x", "w"}, {{"alpha", 0.5f}, {"transB", int64_t{1}}});
  builder.Counting("w", {2, 3});
  EXPECT_THAT(ValuesFrom(builder, {Floats({1, 2, 3}, {1, 0, 0, 0, 2, 0})}), ElementsAre(0.5f, 2.0f, 2.0f, 5.0f));
  builder.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  builder.graph().mutable_node(0)->mutable_input(1)->assign("x");
  EXPECT_THAT(Execute(builder, {}), IsError(kMissing, "the rank of its operand is not known"));
}

// By itself, and behind what a recogniser of tokens takes as it is.
TEST(ExpandTest, RanksAreKnownBehindEmbeddings) {
  for (const char* input : {"ids", "rows"}) {
    OnnxBuilder builder;
    builder.Int64Input("ids", {-1, -1}).Counting("words", {5, 4}).Counting("places", {9, 4}).Counting("one", {4});
    builder.MicrosoftNode("EmbedLayerNormalization", {"ids", "", "words", "places", "", "one", "one"}, {"h"});
    builder.MicrosoftNode("MultiHeadAttention", {"h", "h", "h"}, {"a"}, {{"num_heads", int64_t{2}}});
    builder.MicrosoftNode("SkipLayerNormalization", {"h", "a", "one", "one"}, {"s"});
    builder.MicrosoftNode("MultiHeadAttention", {"s", "s", "s"}, {"y"}, {{"num_heads", int64_t{2}}}).Output("y");
    if (input == std::string("rows")) {
      EXPECT_THAT(Execute(builder, {Tensor::Int64s({1, 2}, std::vector<int64_t>{1, 3})}), IsOk());
    } else {
      EXPECT_THAT(builder.Read(), IsOk());
    }
  }
}

TEST(ExpandTest, ConstantsHaveTheTypeOfWhatTheyMeet) {
  OnnxBuilder builder = Microsoft("QuickGelu", {2}, {"h"}, {{"alpha", 1.0f}});
  builder.graph().mutable_node(0)->mutable_output(0)->assign("g");
  builder.Node("Cast", {"x"}, {"h"}, {{"to", int64_t{onnx::TensorProto::FLOAT16}}});
  builder.Node("Cast", {"g"}, {"y"}, {{"to", int64_t{onnx::TensorProto::FLOAT}}});
  builder.graph().mutable_node()->SwapElements(0, 1);
  EXPECT_THAT(ValuesFrom(builder, {Floats({2}, {1, -1})}), Pointwise(FloatNear(1e-3f), {0.7311f, -0.2689f}));
  auto& alpha = *builder.graph().mutable_node(1)->mutable_attribute(0);
  alpha.set_f(1.702f);
  EXPECT_THAT(ValuesFrom(builder, {Floats({2}, {1, -1})}), Pointwise(FloatNear(2e-3f), {0.8458f, -0.1542f}));
}

TEST(ExpandTest, NormsOfSumsGiveTheSumToo) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Input("skip", {-1, 2}).Floats("scale", {2}, {1, 2}).Floats("shift", {2}, {0, 1});
  builder.MicrosoftNode("SkipLayerNormalization", {"x", "skip", "scale", "shift"}, {"y", "", "", "sum"});
  builder.Output("y").Output("sum");
  const auto outputs = Execute(builder, {Floats({1, 2}, {1, 2}), Floats({1, 2}, {0, 1})});
  ASSERT_THAT(outputs, IsOk());
  EXPECT_THAT(Values((*outputs)[0]), Pointwise(FloatNear(1e-4f), {-1.0f, 3.0f}));
  EXPECT_THAT(Values((*outputs)[1]), ElementsAre(1.0f, 3.0f));
  builder.graph().mutable_node(0)->mutable_output(1)->assign("mean");
  builder.Output("mean");
  EXPECT_THAT(Execute(builder, {}), IsError(kMissing, "its output 1 is not supported"));
}

TEST(ExpandTest, PackedWeightsAreUnpacked) {
  OnnxBuilder builder =
      Microsoft("MatMulNBits", {-1, 16}, {"x", "w", "s", "z"},
                {{"K", int64_t{16}}, {"N", int64_t{1}}, {"bits", int64_t{4}}, {"block_size", int64_t{16}}});
  builder.Floats("s", {1}, {0.5f});
  for (const auto& [name, bytes] :
       {std::pair("w", std::string("\x21\x43\x65\x87\xa9\xcb\xed\x0f", 8)), std::pair("z", std::string("\x01", 1))}) {
    auto& tensor = *builder.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::UINT8);
    tensor.add_dims(static_cast<int64_t>(bytes.size()));
    tensor.set_raw_data(bytes);
  }
  std::vector<float> x(16);
  x[0] = 1;   // code 1, less the zero point 1
  x[1] = 2;   // code 2
  x[14] = 4;  // code 15
  EXPECT_THAT(ValuesFrom(builder, {Floats({1, 16}, x)}), ElementsAre(0.0f + 2 * 0.5f + 4 * 7.0f));
  builder.graph().mutable_node(0)->mutable_input(1)->assign("x");
  EXPECT_THAT(Execute(builder, {}), IsError(kMissing, "its weight is no constant"));
}

// Each head becomes a number in a list where several share keys.
TEST(ExpandTest, NumbersOfHeadsAreBounded) {
  const auto attention = [](int64_t heads) {
    OnnxBuilder builder(23);
    builder.Input("x", {1, 2, 8});
    builder.Node("Attention", {"x", "x", "x"}, {"y"}, {{"q_num_heads", heads}, {"kv_num_heads", int64_t{1}}});
    return builder.Output("y");
  };
  EXPECT_THAT(Execute(attention(int64_t{1} << 40), {}),
              IsError(StatusCode::kInvalidArgument, "q_num_heads is 1099511627776"));
  EXPECT_THAT(Execute(attention(3), {Floats({1, 2, 8}, std::vector<float>(16))}), Not(IsOk()));
}

TEST(ExpandTest, WeightsInBlocksBecomeReal) {
  OnnxBuilder builder(21);
  builder.Input("x", {-1, 4}).Floats("s", {2, 1}, {1.0f, 10.0f});
  auto& weight = *builder.graph().add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::INT8);
  weight.add_dims(4);
  weight.add_dims(1);
  weight.set_raw_data(std::string("\x01\x02\x03\x04", 4));
  builder.Node("DequantizeLinear", {"w", "s"}, {"r"}, {{"axis", int64_t{0}}, {"block_size", int64_t{2}}});
  builder.Node("MatMul", {"x", "r"}, {"y"}).Output("y");
  const auto graph = builder.Read();
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(OperatorsOf(*graph), ElementsAre("MatMul"));
  EXPECT_THAT(ValuesFrom(builder, {Floats({1, 4}, {1, 1, 1, 1})}), ElementsAre(73.0f));
}

// Blocks of what is not constant are the interpreter's.
TEST(ExpandTest, ActivationsMayBeInBlocksAndOfSixteenBits) {
  OnnxBuilder builder(21);
  builder.Input("x", {1, 4}).Floats("s", {1, 2}, {0.5f, 2.0f});
  builder.Node("QuantizeLinear", {"x", "s"}, {"q"},
               {{"axis", int64_t{1}}, {"block_size", int64_t{2}}, {"output_dtype", int64_t{onnx::TensorProto::INT16}}});
  builder.Node("DequantizeLinear", {"q", "s"}, {"y"}, {{"axis", int64_t{1}}, {"block_size", int64_t{2}}}).Output("y");
  EXPECT_THAT(ValuesFrom(builder, {Floats({1, 4}, {0.6f, 300.2f, 0.9f, 99999.0f})}),
              ElementsAre(0.5f, 300.0f, 0.0f, 65534.0f));
}

TEST(ExpandTest, BodiesAreLookedThrough) {
  OnnxBuilder branch;
  branch.MicrosoftNode("QuickGelu", {"x"}, {"r"}).Output("r");
  OnnxBuilder other;
  other.Node("Neg", {"x"}, {"n"}).Output("n");
  OnnxBuilder builder;
  builder.Input("x", {1}).Floats("zero", {}, {0}).Node("ReduceSum", {"x"}, {"sum"}, {{"keepdims", int64_t{0}}});
  builder.Node("Greater", {"sum", "zero"}, {"positive"}).Node("If", {"positive"}, {"y"});
  builder.Body("then_branch", {}, branch).Body("else_branch", {}, other).Output("y");
  EXPECT_THAT(ValuesFrom(builder, {Floats({1}, {1})}), Pointwise(FloatNear(1e-4f), {0.8458f}));
  EXPECT_THAT(ValuesFrom(builder, {Floats({1}, {-1})}), ElementsAre(1.0f));
}

TEST(ExpandTest, RandomNumbersAreTheSameInEveryRun) {
  const auto drawn = [](const std::map<std::string, Attribute>& attributes) {
    OnnxBuilder builder;
    builder.Input("x", {1000}).Node("RandomNormalLike", {"x"}, {"y"}, attributes).Output("y");
    return ValuesFrom(builder, {Floats({1000}, std::vector<float>(1000))});
  };
  const std::vector<float> first = drawn({{"seed", 7.0f}});
  EXPECT_EQ(drawn({{"seed", 7.0f}}), first);
  EXPECT_NE(drawn({{"seed", 8.0f}}), first);
  EXPECT_EQ(drawn({}), drawn({}));
  float sum = 0, squares = 0;
  for (const float number : first) {
    sum += number;
    squares += number * number;
  }
  EXPECT_NEAR(sum / 1000, 0.0f, 0.1f);
  EXPECT_NEAR(squares / 1000, 1.0f, 0.15f);
}

}  // namespace
}  // namespace swizzle::expansions
