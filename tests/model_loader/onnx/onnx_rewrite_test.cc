#include "model_loader/onnx/onnx_rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "onnx/onnx.pb.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model that need not be runnable: nodes, initializers, and fields that nothing here knows.
class ModelBuilder {
 public:
  ModelBuilder() {
    model_.set_ir_version(8);
    model_.set_producer_name("test");
    model_.mutable_graph()->set_name("graph");
    onnx::ModelProto::GetReflection()->MutableUnknownFields(&model_)->AddVarint(9999, 42);
  }

  onnx::TensorProto& Initializer(const std::string& name, std::vector<int64_t> dims, bool raw = true) {
    onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    int64_t elements = 1;
    for (int64_t dim : dims) {
      tensor.add_dims(dim);
      elements *= dim;
    }
    std::vector<float> values(static_cast<size_t>(elements));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
    if (raw) {
      tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    } else {
      tensor.mutable_float_data()->Assign(values.begin(), values.end());
    }
    return tensor;
  }

  onnx::NodeProto& Node(const std::string& op, const std::string& name, std::vector<std::string> inputs) {
    onnx::NodeProto& node = *model_.mutable_graph()->add_node();
    node.set_op_type(op);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(name + ".out");
    return node;
  }

  void GraphOutput(const std::string& name) { model_.mutable_graph()->add_output()->set_name(name); }

  onnx::ModelProto& model() { return model_; }

  std::string Serialised() const { return model_.SerializeAsString(); }

 private:
  onnx::ModelProto model_;
};

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::vector<OnnxWeight> WeightsOf(const std::string& model) {
  std::vector<OnnxWeight> weights;
  const auto result =
      RewriteOnnxWeights(Bytes(model), [&](const OnnxWeight& weight, std::span<float>) { weights.push_back(weight); });
  EXPECT_TRUE(result.ok()) << result.status();
  return weights;
}

TEST(OnnxRewrite, FindsTheWeightsOfConvGemmAndMatMul) {
  ModelBuilder builder;
  builder.Initializer("conv.weight", {4, 2, 3, 3});
  builder.Initializer("conv.bias", {4});
  builder.Initializer("gemm.weight", {4, 2});
  builder.Initializer("gemm.bias", {1, 2});
  builder.Initializer("matmul.weight", {4, 2});
  builder.Initializer("vector", {4});
  builder.Node("Conv", "conv", {"x", "conv.weight", "conv.bias"});
  builder.Node("Gemm", "gemm", {"conv.out", "gemm.weight", "gemm.bias"});
  builder.Node("MatMul", "matmul", {"gemm.out", "matmul.weight"});
  builder.Node("MatMul", "dot", {"matmul.out", "vector"});
  const std::vector<OnnxWeight> weights = WeightsOf(builder.Serialised());
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_THAT(weights[0].names, ElementsAre("conv", "conv.weight"));
  EXPECT_THAT(weights[0].shape, ElementsAre(4, 2, 3, 3));
  EXPECT_THAT(weights[1].names, ElementsAre("gemm", "gemm.weight"));
  EXPECT_THAT(weights[2].names, ElementsAre("matmul", "matmul.weight"));
}

TEST(OnnxRewrite, GroupedConvolutionsAreLeftAlone) {
  ModelBuilder builder;
  builder.Initializer("depthwise", {4, 1, 3, 3});
  builder.Initializer("one_group", {4, 4, 1, 1});
  auto& group = *builder.Node("Conv", "a", {"x", "depthwise"}).add_attribute();
  group.set_name("group");
  group.set_i(4);
  auto& one = *builder.Node("Conv", "b", {"a.out", "one_group"}).add_attribute();
  one.set_name("group");
  one.set_i(1);
  const std::vector<OnnxWeight> weights = WeightsOf(builder.Serialised());
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].names[0], "b");
}

TEST(OnnxRewrite, SharedWeightsCountOnceAndOnlyWhereEveryUseIsOne) {
  ModelBuilder builder;
  builder.Initializer("shared", {4, 4});
  builder.Initializer("also_added", {4, 4});
  builder.Initializer("returned", {4, 4});
  builder.Node("Identity", "alias", {"shared"});
  builder.Node("MatMul", "first", {"x", "shared"});
  builder.Node("MatMul", "second", {"first.out", "alias.out"});
  builder.Node("MatMul", "third", {"second.out", "also_added"});
  builder.Node("Add", "add", {"third.out", "also_added"});
  builder.Node("MatMul", "fourth", {"add.out", "returned"});
  builder.GraphOutput("returned");
  const std::vector<OnnxWeight> weights = WeightsOf(builder.Serialised());
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_THAT(weights[0].names, ElementsAre("first", "second", "shared"));
}

TEST(OnnxRewrite, WhatOtherOperatorsOrSubgraphsReadIsLeftAlone) {
  ModelBuilder builder;
  for (const char* name : {"of_others", "renamed", "read_inside", "returned_inside", "weight"}) {
    builder.Initializer(name, {4, 4});
  }
  builder.Initializer("stack", {2, 4, 4});
  builder.Node("MatMul", "others", {"x", "of_others"}).set_domain("my.ops");
  builder.Node("Identity", "alias", {"renamed"}).set_domain("my.ops");
  builder.Node("MatMul", "aliased", {"x", "renamed"});
  builder.Node("MatMul", "first", {"x", "read_inside"});
  builder.Node("MatMul", "second", {"first.out", "returned_inside"});
  builder.Node("MatMul", "third", {"second.out", "weight"}).set_domain("ai.onnx");
  builder.Node("MatMul", "left", {"stack", "third.out"});  // rows of each of its matrices
  auto& branch = *builder.Node("If", "if", {"c"}).add_attribute();
  branch.set_name("then_branch");
  auto& inner = *branch.mutable_g()->add_node();
  inner.set_op_type("Loop");
  auto& body = *inner.add_attribute();
  body.set_name("body");
  auto& reader = *body.mutable_g()->add_node();
  reader.set_op_type("Add");
  reader.add_input("read_inside");
  body.mutable_g()->add_output()->set_name("returned_inside");
  const std::vector<OnnxWeight> weights = WeightsOf(builder.Serialised());
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_THAT(weights[0].names, ElementsAre("third", "weight"));
}

TEST(OnnxRewrite, RowsAreWhatTheFirstReaderMakesOfThem) {
  const auto turned = [](onnx::NodeProto& node) {
    auto& attribute = *node.add_attribute();
    attribute.set_name("transB");
    attribute.set_i(1);
  };
  ModelBuilder builder;
  for (const char* name : {"one_way", "tied", "square"}) builder.Initializer(name, {4, 4});
  builder.Node("MatMul", "a", {"x", "one_way"});
  builder.Node("Gemm", "b", {"a.out", "one_way"});
  builder.Node("MatMul", "c", {"b.out", "tied"});
  turned(builder.Node("Gemm", "d", {"c.out", "tied"}));
  turned(builder.Node("Gemm", "e", {"d.out", "square"}));
  builder.Node("MatMul", "f", {"square", "e.out"});
  const std::vector<OnnxWeight> weights = WeightsOf(builder.Serialised());
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_TRUE(weights[0].outputs_last && !weights[0].both_ways);
  EXPECT_TRUE(weights[1].outputs_last && weights[1].both_ways);
  EXPECT_TRUE(!weights[2].outputs_last && !weights[2].both_ways);
}

TEST(OnnxRewrite, ChangesTheElementsInEitherEncodingAndNothingElse) {
  ModelBuilder builder;
  builder.Initializer("raw", {2, 2});
  builder.Initializer("typed", {2, 2}, false);
  builder.Initializer("bias", {2});
  builder.Node("Gemm", "a", {"x", "raw", "bias"});
  builder.Node("Gemm", "b", {"a.out", "typed", "bias"});
  const std::string before = builder.Serialised();
  const auto after = RewriteOnnxWeights(Bytes(before), [](const OnnxWeight&, std::span<float> v) { v[1] = 0.0f; });
  ASSERT_TRUE(after.ok()) << after.status();

  onnx::ModelProto expected, actual;
  ASSERT_TRUE(expected.ParseFromString(before));
  ASSERT_TRUE(actual.ParseFromArray(after->data(), static_cast<int>(after->size())));
  const float pruned[] = {1.0f, 0.0f, 3.0f, 4.0f};
  expected.mutable_graph()->mutable_initializer(0)->set_raw_data(pruned, sizeof(pruned));
  expected.mutable_graph()->mutable_initializer(1)->set_float_data(1, 0.0f);
  EXPECT_EQ(actual.SerializeAsString(), expected.SerializeAsString());
}

TEST(OnnxRewrite, AnUntouchedModelComesBackByteForByte) {
  ModelBuilder builder;
  builder.Initializer("weight", {2, 2});
  builder.Node("Gemm", "a", {"x", "weight"});
  const std::string before = builder.Serialised();
  const auto after = RewriteOnnxWeights(Bytes(before), [](const OnnxWeight&, std::span<float>) {});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_TRUE(std::ranges::equal(*after, Bytes(before)));
}

TEST(OnnxRewrite, WeightsItCannotEditAreNamed) {
  const auto error_of = [](ModelBuilder& builder) {
    builder.Node("Gemm", "a", {"x", "weight"});
    const std::string model = builder.Serialised();
    return std::string(RewriteOnnxWeights(Bytes(model), [](const OnnxWeight&, std::span<float>) {}).status().message());
  };
  ModelBuilder external, half, short_data;
  auto& outside = external.Initializer("weight", {2, 2});
  outside.set_data_location(onnx::TensorProto::EXTERNAL);
  outside.clear_raw_data();
  EXPECT_THAT(error_of(external), HasSubstr("'weight' lies in an external file"));
  auto& tensor = half.Initializer("weight", {2, 2});
  tensor.set_data_type(onnx::TensorProto::FLOAT16);
  tensor.mutable_raw_data()->resize(8);
  EXPECT_THAT(error_of(half), HasSubstr("'weight' is a weight of FP16"));
  short_data.Initializer("weight", {2, 2}).mutable_raw_data()->resize(15);
  EXPECT_THAT(error_of(short_data), HasSubstr("'weight' has 15 bytes of data"));
}

TEST(OnnxRewrite, ExternalDataIsPutInside) {
  const TemporaryFolder folder;
  const float floats[] = {0, 1, 2, 3, 4, 5, 6, 7};
  std::ofstream(folder / "data", std::ios::binary).write(reinterpret_cast<const char*>(floats), sizeof(floats));
  const auto make_external = [](onnx::TensorProto& tensor, const std::string& offset) {
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    tensor.clear_raw_data();
    for (const auto& [key, value] : std::map<std::string, std::string>{{"location", "data"}, {"offset", offset}}) {
      tensor.add_external_data()->set_key(key);
      tensor.mutable_external_data()->rbegin()->set_value(value);
    }
  };
  ModelBuilder builder;
  make_external(builder.Initializer("weight", {2, 2}), "4");
  make_external(builder.Initializer("bias", {2}), "20");
  builder.Node("Gemm", "a", {"x", "weight", "bias"});
  onnx::AttributeProto& branch = *builder.Node("If", "b", {"a.out"}).add_attribute();
  onnx::TensorProto& inner = *branch.mutable_g()->add_node()->add_attribute()->mutable_t();
  inner.set_data_type(onnx::TensorProto::FLOAT);
  inner.add_dims(1);
  make_external(inner, "28");
  *builder.model().add_functions()->add_node()->add_attribute()->mutable_t() = inner;
  *builder.model().add_training_info()->mutable_algorithm()->add_initializer() = inner;
  const std::string model = builder.Serialised();
  const auto zero_first = [](const OnnxWeight&, std::span<float> v) { v[0] = 0.0f; };

  ReadOptions options;
  options.external_folder.path = folder.path();
  const auto after = RewriteOnnxWeights(Bytes(model), zero_first, options);
  ASSERT_TRUE(after.ok()) << after.status();
  onnx::ModelProto actual;
  ASSERT_TRUE(actual.ParseFromArray(after->data(), static_cast<int>(after->size())));
  const auto floats_of = [](const onnx::TensorProto& tensor) {
    EXPECT_FALSE(tensor.has_data_location());
    EXPECT_EQ(tensor.external_data_size(), 0);
    std::vector<float> values(tensor.raw_data().size() / sizeof(float));
    std::memcpy(values.data(), tensor.raw_data().data(), values.size() * sizeof(float));
    return values;
  };
  const auto& graph = actual.graph();
  EXPECT_THAT(floats_of(graph.initializer(0)), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(floats_of(graph.initializer(1)), ElementsAre(5, 6));
  EXPECT_THAT(floats_of(graph.node(1).attribute(0).g().node(0).attribute(0).t()), ElementsAre(7));
  EXPECT_THAT(floats_of(actual.functions(0).node(0).attribute(0).t()), ElementsAre(7));
  EXPECT_THAT(floats_of(actual.training_info(0).algorithm().initializer(0)), ElementsAre(7));

  options.max_external_bytes = 35;
  EXPECT_THAT(RewriteOnnxWeights(Bytes(model), zero_first, options),
              testing::IsError(StatusCode::kInvalidArgument, "takes the model above its limit"));
}

TEST(OnnxRewrite, SparseWeightsStaySparse) {
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 2}).Sparse("w", {2, 3}, {1, 2, 3}, {0, 2, 4}).Sparse("bias", {3}, {1}, {2});
  builder.Node("Gemm", {"x", "w", "bias"}, {"y"}).Output("y");
  std::vector<std::string> names;
  const auto after = RewriteOnnxWeights(builder.Bytes(), [&](const OnnxWeight& weight, std::span<float> v) {
    names = weight.names;
    EXPECT_THAT(weight.shape, ElementsAre(2, 3));
    EXPECT_THAT(v, ElementsAre(1, 0, 2, 0, 3, 0));
    v[0] = 0.0f;
  });
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(names, ElementsAre("y_node", "w"));
  testing::OnnxBuilder expected;
  expected.Input("x", {-1, 2}).Sparse("w", {2, 3}, {2, 3}, {2, 4}).Sparse("bias", {3}, {1}, {2});
  expected.Node("Gemm", {"x", "w", "bias"}, {"y"}).Output("y");
  EXPECT_EQ(*after, expected.Bytes());
}

TEST(OnnxRewrite, WeightsMayBeConstantNodes) {
  testing::OnnxBuilder builder, expected;
  for (const float first : {1.0f, 0.0f}) {
    const auto weight = [&](const Shape& shape) { return Tensor::Floats(shape, std::vector<float>{first, 2, 3, 4}); };
    testing::OnnxBuilder& model = first == 0.0f ? expected : builder;
    model.Input("x", {-1, 2}).Node("Constant", {}, {"w"}, {{"value", weight({2, 2})}});
    model.Node("Constant", {}, {"added"}, {{"value", Tensor::Floats({1, 2}, std::vector<float>{1, 2})}});
    model.Node("Identity", {"w"}, {"alias"}).Node("MatMul", {"x", "alias"}, {"m"}).Node("Add", {"m", "added"}, {"y"});
    auto& sparse = *model.Output("y").graph().add_node();
    sparse.set_op_type("Constant");
    sparse.add_output("s");
    sparse.add_attribute()->set_name("sparse_value");
    sparse.mutable_attribute(0)->set_type(onnx::AttributeProto::SPARSE_TENSOR);
    testing::OnnxBuilder holder;
    holder.Sparse("", {2, 2}, first == 0.0f ? std::vector<float>{6} : std::vector<float>{5, 6},
                  first == 0.0f ? std::vector<int64_t>{3} : std::vector<int64_t>{0, 3});
    *sparse.mutable_attribute(0)->mutable_sparse_tensor() = holder.graph().sparse_initializer(0);
    model.Node("MatMul", {"y", "s"}, {"z"}).Output("z");
  }
  std::vector<std::vector<std::string>> names;
  const auto after = RewriteOnnxWeights(builder.Bytes(), [&](const OnnxWeight& weight, std::span<float> v) {
    names.push_back(weight.names);
    EXPECT_THAT(weight.shape, ElementsAre(2, 2));
    v[0] = 0.0f;
  });
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(names, ElementsAre(ElementsAre("m_node", "w"), ElementsAre("z_node", "s")));
  EXPECT_EQ(*after, expected.Bytes());
}

void SetInt(onnx::NodeProto& node, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_i(value);
}

// Whole numbers and halves behind a Cast, a factor or a Transpose stay of their type.
TEST(OnnxRewrite, WeightsMayStandBehindOperatorsThatKeepZeros) {
  ModelBuilder builder;
  for (const char* name : {"bytes", "halves", "turned", "scaled"}) builder.Initializer(name, {2, 2});
  builder.Initializer("scale", {});
  onnx::GraphProto& graph = *builder.model().mutable_graph();
  graph.mutable_initializer(0)->set_data_type(onnx::TensorProto::INT8);
  graph.mutable_initializer(0)->set_raw_data("\1\2\3\xfc", 4);
  graph.mutable_initializer(1)->set_data_type(onnx::TensorProto::FLOAT16);
  graph.mutable_initializer(1)->clear_raw_data();
  for (const int bits : {0x3c00, 0x4000, 0x4200, 0x4400}) graph.mutable_initializer(1)->add_int32_data(bits);
  SetInt(builder.Node("Cast", "cast_bytes", {"bytes"}), "to", onnx::TensorProto::FLOAT);
  builder.Node("Mul", "scale_bytes", {"scale", "cast_bytes.out"});
  builder.Node("MatMul", "a", {"x", "scale_bytes.out"});
  SetInt(builder.Node("Cast", "cast_halves", {"halves"}), "to", onnx::TensorProto::FLOAT);
  builder.Node("Gemm", "b", {"a.out", "cast_halves.out"});
  builder.Node("Transpose", "turn", {"turned"});
  builder.Node("MatMul", "c", {"b.out", "turn.out"});
  builder.Node("Div", "divide", {"scaled", "scale"});
  builder.Node("MatMul", "d", {"c.out", "divide.out"});
  const std::vector<OnnxWeight> weights = WeightsOf(builder.Serialised());
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_THAT(weights[0].names, ElementsAre("a", "bytes"));
  EXPECT_TRUE(weights[0].outputs_last && weights[0].is_indirect);
  EXPECT_FALSE(weights[2].outputs_last) << "its rows are outputs";
  EXPECT_TRUE(UnseenOnnxWeights(Bytes(builder.Serialised())).empty());

  const std::string before = builder.Serialised();
  const auto after = RewriteOnnxWeights(Bytes(before), [](const OnnxWeight&, std::span<float> v) {
    EXPECT_EQ(v[2], 3.0f);
    v[1] = 0.0f;
  });
  ASSERT_TRUE(after.ok()) << after.status();
  onnx::ModelProto actual;
  ASSERT_TRUE(actual.ParseFromArray(after->data(), static_cast<int>(after->size())));
  EXPECT_EQ(actual.graph().initializer(0).raw_data(), std::string("\1\0\3\xfc", 4));
  EXPECT_EQ(actual.graph().initializer(0).data_type(), onnx::TensorProto::INT8);
  EXPECT_EQ(actual.graph().initializer(1).raw_data(), std::string("\0\x3c\0\0\0\x42\0\x44", 8));
  EXPECT_EQ(actual.graph().initializer(1).int32_data_size(), 0);
}

TEST(OnnxRewrite, WeightsMayBeInBranchesAndLoops) {
  ModelBuilder builder;
  builder.Initializer("outer", {4, 4});
  const auto read = [](onnx::GraphProto& graph, const std::string& name, const std::string& weight) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("MatMul");
    node.set_name(name);
    node.add_input("x");
    node.add_input(weight);
    node.add_output(name + ".out");
    graph.add_output()->set_name(name + ".out");
  };
  onnx::NodeProto& condition = builder.Node("If", "if", {"c"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *condition.add_attribute();
    attribute.set_name(branch);
    ModelBuilder inner;
    *attribute.mutable_g()->add_initializer() = inner.Initializer("inner", {2, 2});  // both have one of this name
    read(*attribute.mutable_g(), branch, "inner");
  }
  onnx::AttributeProto& body = *builder.Node("Loop", "loop", {"n", ""}).add_attribute();
  body.set_name("body");
  read(*body.mutable_g(), "looped", "outer");
  std::vector<std::vector<std::string>> names;
  const std::string before = builder.Serialised();
  const auto after = RewriteOnnxWeights(Bytes(before), [&](const OnnxWeight& weight, std::span<float> v) {
    names.push_back(weight.names);
    EXPECT_TRUE(weight.is_indirect);
    v[0] = static_cast<float>(names.size());
  });
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT(names, ElementsAre(ElementsAre("looped", "outer"), ElementsAre("then_branch", "inner"),
                                 ElementsAre("else_branch", "inner")));
  onnx::ModelProto actual;
  ASSERT_TRUE(actual.ParseFromArray(after->data(), static_cast<int>(after->size())));
  const auto first = [&](int branch) {
    float value;
    std::memcpy(&value, actual.graph().node(0).attribute(branch).g().initializer(0).raw_data().data(), sizeof(value));
    return value;
  };
  EXPECT_EQ(first(0), 2.0f);
  EXPECT_EQ(first(1), 3.0f);
}

TEST(OnnxRewrite, WhatLayersMultiplyWithAndIsLeftAloneIsNamed) {
  ModelBuilder builder;
  for (const char* name : {"tied", "shifted", "wide", "plain"}) builder.Initializer(name, {4, 4});
  builder.Initializer("offset", {4});
  auto& wide = *builder.model().mutable_graph()->mutable_initializer(2);
  wide.set_data_type(onnx::TensorProto::DOUBLE);
  wide.set_raw_data(std::string(128, '\0'));
  builder.Node("Gather", "words", {"tied", "ids"});
  builder.Node("MatMul", "a", {"x", "tied"});
  builder.Node("Sub", "shift", {"shifted", "offset"});
  SetInt(builder.Node("Cast", "cast", {"shift.out"}), "to", onnx::TensorProto::FLOAT);
  builder.Node("MatMul", "b", {"a.out", "cast.out"});
  SetInt(builder.Node("Cast", "", {"wide"}), "to", onnx::TensorProto::FLOAT);
  builder.Node("MatMul", "c", {"b.out", ".out"});
  builder.Node("MatMul", "d", {"c.out", "plain"});
  EXPECT_EQ(WeightsOf(builder.Serialised()).size(), 1u);
  EXPECT_THAT(UnseenOnnxWeights(Bytes(builder.Serialised())),
              ElementsAre("'tied' (Gather node 'words' reads it, too)", "'shifted' (behind Sub node 'shift')",
                          "'wide' (behind a node Cast)"));
  EXPECT_TRUE(UnseenOnnxWeights(Bytes("not a model")).empty());
}

TEST(OnnxRewrite, GarbageIsRefused) {
  const auto status = RewriteOnnxWeights(Bytes("not a model"), [](const OnnxWeight&, std::span<float>) {}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace swizzle
