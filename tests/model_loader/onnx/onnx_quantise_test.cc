#include "model_loader/onnx/onnx_quantise.h"

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onnx/onnx.pb.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void AddNode(onnx::GraphProto& graph, const std::string& op, const std::string& name,
             const std::vector<std::string>& inputs) {
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  node.add_output(name + ".out");
}

// x times a weight [2, 3], the same through Identity, and x times itself.
onnx::ModelProto Model(int64_t opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("graph");
  graph.add_input()->set_name("x");
  onnx::TensorProto& weight = *graph.add_initializer();
  weight.set_name("weight");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(2);
  weight.add_dims(3);
  const float values[] = {1.27f, 0.0f, 0.5f, -0.5f, 0.0f, -254.0f};
  weight.set_raw_data(values, sizeof(values));
  AddNode(graph, "MatMul", "first", {"x", "weight"});
  AddNode(graph, "Identity", "same", {"weight"});
  AddNode(graph, "MatMul", "second", {"x", "same.out"});
  AddNode(graph, "MatMul", "scores", {"first.out", "second.out"});
  graph.add_output()->set_name("scores.out");
  return model;
}

StatusOr<onnx::ModelProto> Quantised(const onnx::ModelProto& model, const std::string& skipped = "") {
  const std::string bytes = model.SerializeAsString();
  const auto skips = [&](const std::string& name) { return name == skipped; };
  const auto made = QuantiseOnnxDynamically(std::as_bytes(std::span(bytes)), skips);
  if (!made.ok()) return made.status();
  onnx::ModelProto read;
  EXPECT_TRUE(read.ParseFromArray(made->data(), static_cast<int>(made->size())));
  return read;
}

std::vector<std::string> Operators(const onnx::ModelProto& model) {
  std::vector<std::string> operators;
  for (const auto& node : model.graph().node()) operators.push_back(node.op_type());
  return operators;
}

TEST(QuantiseOnnxTest, ProductsWithWeightsAreOfWholeNumbers) {
  const auto model = Quantised(Model(11));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Operators(*model), ElementsAre("DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul",
                                             "MatMulInteger", "Cast", "Mul", "Mul", "MatMul"));
  std::map<std::string, onnx::TensorProto> constants;
  for (const auto& tensor : model->graph().initializer()) constants[tensor.name()] = tensor;
  ASSERT_EQ(constants.size(), 2u);  // the weight is held once, and no more in FP32
  const std::string& wholes = constants.at("weight.wholes").raw_data();
  EXPECT_THAT(std::vector<int8_t>(wholes.begin(), wholes.end()), ElementsAre(127, 0, 0, -50, 0, -127));
  std::vector<float> scales(3);
  std::memcpy(scales.data(), constants.at("weight.scales").raw_data().data(), sizeof(float) * scales.size());
  EXPECT_THAT(scales, ElementsAre(::testing::FloatEq(0.01f), 1.0f, 2.0f));
  EXPECT_EQ(model->graph().node(9).input(0), "first.out");
}

TEST(QuantiseOnnxTest, WhatIsSkippedKeepsItsWeight) {
  const auto model = Quantised(Model(17), "second");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Operators(*model), ElementsAre("DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul", "Identity",
                                             "MatMul", "MatMul"));
  EXPECT_EQ(model->graph().initializer_size(), 3);
}

std::vector<std::string> Inputs(const onnx::ModelProto& model) {
  std::vector<std::string> names;
  for (const auto& input : model.graph().input()) names.push_back(input.name());
  return names;
}

// Else engines would ask for the weight with every request.
TEST(QuantiseOnnxTest, WeightsListedAsInputsLeaveBothLists) {
  onnx::ModelProto listed = Model(11);
  listed.set_ir_version(3);
  listed.mutable_graph()->add_input()->set_name("weight");
  const auto model = Quantised(listed);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Inputs(*model), ElementsAre("x"));
  EXPECT_EQ(model->ir_version(), 4);  // from which on the whole numbers need not be listed
  const auto kept = Quantised(listed, "second");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(Inputs(*kept), ElementsAre("x", "weight"));
}

TEST(QuantiseOnnxTest, WeightsThatGraphsWithinReadStay) {
  onnx::ModelProto nested = Model(11);
  AddNode(*nested.mutable_graph(), "If", "choice", {"x"});
  onnx::NodeProto& choice = *nested.mutable_graph()->mutable_node(4);
  onnx::AttributeProto& branch = *choice.add_attribute();
  branch.set_name("then_branch");
  branch.set_type(onnx::AttributeProto::GRAPH);
  AddNode(*branch.mutable_g(), "Relu", "inner", {"weight"});
  const auto model = Quantised(nested);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph().initializer_size(), 3);
}

TEST(QuantiseOnnxTest, NamesOfNamesStayWithTheirWeight) {
  onnx::ModelProto chain = Model(11);
  AddNode(*chain.mutable_graph(), "Identity", "again", {"same.out"});
  AddNode(*chain.mutable_graph(), "Relu", "positive", {"again.out"});
  const auto model = Quantised(chain);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->graph().initializer_size(), 3);
}

// As exporters leave weights that they don't fold.
TEST(QuantiseOnnxTest, WeightsBehindTransposeAndInConstantNodes) {
  onnx::ModelProto plain = Model(11), unfolded = Model(11);
  onnx::GraphProto& graph = *unfolded.mutable_graph();
  onnx::TensorProto turned = graph.initializer(0);
  graph.clear_initializer();
  graph.clear_node();
  const float values[] = {1.27f, -0.5f, 0.0f, 0.0f, 0.5f, -254.0f};  // as Model's, [3, 2]
  turned.set_raw_data(values, sizeof(values));
  turned.set_dims(0, 3);
  turned.set_dims(1, 2);
  AddNode(graph, "Constant", "held", {});
  onnx::AttributeProto& value = *graph.mutable_node(0)->add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = turned;
  AddNode(graph, "Transpose", "turned", {"held.out"});
  AddNode(graph, "MatMul", "product", {"x", "turned.out"});
  graph.mutable_output(0)->set_name("product.out");
  const auto model = Quantised(unfolded), expected = Quantised(plain);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(Operators(*model), ElementsAre("DynamicQuantizeLinear", "MatMulInteger", "Cast", "Mul", "Mul"));
  ASSERT_EQ(model->graph().initializer_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(model->graph().initializer(i).raw_data(), expected->graph().initializer(i).raw_data());
  }
}

TEST(QuantiseOnnxTest, TheDomainOfOnnxHasTwoNames) {
  onnx::ModelProto named = Model(11);
  named.mutable_opset_import(0)->set_domain("ai.onnx");
  named.mutable_graph()->mutable_node(0)->set_domain("ai.onnx");
  const auto model = Quantised(named, "second");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(Operators(*model)[1], "MatMulInteger");
}

TEST(QuantiseOnnxTest, OldOpsetsBecomeOnesThatHaveWholeNumbers) {
  const auto model = Quantised(Model(10));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->opset_import(0).version(), 11);
  EXPECT_THAT(std::string(Quantised(Model(5)).status().message()), HasSubstr("opset 5"));
}

}  // namespace
}  // namespace swizzle
