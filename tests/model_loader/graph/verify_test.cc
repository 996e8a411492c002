#include "model_loader/graph/verify.h"

#include <functional>

#include "gtest/gtest.h"
#include "model_loader/graph/operator_table.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

// relu(x) + c
Graph SmallGraph() {
  Graph graph;
  const int x = graph.AddValue({"x", DType::kFloat32, Shape{kFreeBatch, 2}, std::nullopt});
  const int r = graph.AddValue({"r", DType::kFloat32, std::nullopt, std::nullopt});
  const int c = graph.AddConstant("c", Tensor::Floats({2}, std::vector<float>{1, 2}));
  const int y = graph.AddValue({"y", DType::kFloat32, std::nullopt, std::nullopt});
  graph.inputs = {x};
  graph.nodes.push_back({"Relu", "", "relu", {x}, {r}, {}});
  graph.nodes.push_back({"Add", "", "add", {r, c}, {y}, {}});
  graph.outputs = {{"y", y}};
  return graph;
}

TEST(VerifyTest, AcceptsGraph) { EXPECT_THAT(Verify(SmallGraph()), IsOk()); }

TEST(VerifyTest, AcceptsOneValueAsTwoOutputs) {
  Graph graph = SmallGraph();
  graph.outputs.push_back({"again", graph.outputs[0].value});
  EXPECT_THAT(Verify(graph), IsOk());
}

struct Fault {
  const char* name;
  std::function<void(Graph&)> make;
  const char* message;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class VerifyFaultTest : public ::testing::TestWithParam<Fault> {};

TEST_P(VerifyFaultTest, IsRefused) {
  Graph graph = SmallGraph();
  GetParam().make(graph);
  EXPECT_THAT(Verify(graph), IsError(StatusCode::kInvalidArgument, GetParam().message));
}

const Fault kFaults[] = {
    {"InputOutOfRange", [](Graph& g) { g.nodes[0].inputs[0] = 9; }, "Relu node 'relu': value 9 does not exist"},
    {"OutputOutOfRange", [](Graph& g) { g.nodes[0].outputs[0] = -7; }, "value -7 does not exist"},
    {"GraphInputOutOfRange", [](Graph& g) { g.inputs[0] = 9; }, "value 9 does not exist"},
    {"GraphInputTwice", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }, "'x' is made twice"},
    {"TwoProducers", [](Graph& g) { g.nodes[1].outputs = g.nodes[0].outputs; }, "'r' is made twice"},
    {"ProducesConstant", [](Graph& g) { g.nodes[0].outputs[0] = 2; }, "'c' is made twice"},
    {"ReadsUnmade", [](Graph& g) { g.nodes[0].inputs[0] = 3; }, "Relu node 'relu' reads 'y'"},
    {"OutOfOrder", [](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }, "Add node 'add' reads 'r'"},
    {"Nameless", [](Graph& g) { g.nodes[0].name.clear(); }, "a Relu node has no name"},
    {"UnknownOperator", [](Graph& g) { g.nodes[0].op = "Relu7"; }, "not known"},
    {"UnknownDomain", [](Graph& g) { g.nodes[0].domain = "elsewhere"; }, "not known"},
    {"TooManyInputs", [](Graph& g) { g.nodes[0].inputs.push_back(2); }, "has 2 inputs"},
    {"TooFewInputs", [](Graph& g) { g.nodes[1].inputs.pop_back(); }, "has 1 inputs"},
    {"NeededInputLeftOut", [](Graph& g) { g.nodes[1].inputs[1] = kNoValue; }, "lacks its input 1"},
    {"NoOutputs", [](Graph& g) { g.nodes[1].outputs.clear(); }, "has 0 outputs"},
    {"OutputMadeByNothing", [](Graph& g) { g.nodes.pop_back(); }, "graph output 'y' is made by nothing"},
    {"OutputUnnamed", [](Graph& g) { g.outputs[0].name.clear(); }, "no name"},
    {"OutputTwice", [](Graph& g) { g.outputs.push_back(g.outputs[0]); }, "listed twice"},
    {"ConstantOfOtherShape",
     [](Graph& g) {
       g.values[2].shape = Shape{1, 2};
     },
     "constant 'c' has another type or shape"},
    {"ConstantOfOtherSize", [](Graph& g) { g.values[2].constant->bytes.pop_back(); }, "has 7 bytes for 2 elements"},
    {"FreeSecondDimension",
     [](Graph& g) {
       g.values[0].shape = Shape{1, kFreeBatch};
     },
     "only dimension 0 may be free"},
};

INSTANTIATE_TEST_SUITE_P(Faults, VerifyFaultTest, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return std::string(fault.param.name); });

TEST(OperatorsTest, KnowsAttributes) {
  const OperatorSpec* conv = FindOperator("", "Conv");
  ASSERT_NE(conv, nullptr);
  EXPECT_TRUE(HasAttribute(*conv, "strides", 17));
  EXPECT_TRUE(HasAttribute(*conv, "auto_pad", 17));
  EXPECT_FALSE(HasAttribute(*conv, "stride", 17));
  EXPECT_FALSE(HasAttribute(*conv, "", 17));
  EXPECT_FALSE(HasAttribute(*FindOperator("", "Relu"), "alpha", 17));
  const OperatorSpec* clip = FindOperator("", "Clip");
  EXPECT_TRUE(HasAttribute(*clip, "min", 10));
  EXPECT_FALSE(HasAttribute(*clip, "min", 11));
  EXPECT_FALSE(HasAttribute(*clip, "min<11", 10));
  EXPECT_EQ(FindOperator("", "Affine"), nullptr);
}

}  // namespace
}  // namespace swizzle
