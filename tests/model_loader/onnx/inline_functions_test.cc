#include "model_loader/onnx/inline_functions.h"

#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "model_loader/onnx/onnx_reader.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::OnnxBuilder;

onnx::FunctionProto Function(const std::string& name, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs, int64_t opset = 17) {
  onnx::FunctionProto function;
  function.set_name(name);
  function.set_domain("local");
  for (const std::string& input : inputs) function.add_input(input);
  for (const std::string& output : outputs) function.add_output(output);
  function.add_opset_import()->set_version(opset);
  return function;
}

onnx::NodeProto& Put(onnx::FunctionProto& function, const std::string& op, const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

// y = function(x).
OnnxBuilder Calling(const std::string& name, const std::map<std::string, Attribute>& attributes = {}) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Node(name, {"x"}, {"y"}, attributes).Output("y");
  builder.graph().mutable_node(0)->set_domain("local");
  return builder;
}

StatusOr<std::string> Inlined(const OnnxBuilder& builder) {
  ReadOptions options;
  options.any_inputs = true;
  options.find_operator = FindInterpretedOperator;
  SWIZZLE_ASSIGN_OR_RETURN(const Graph graph, ReadOnnx(builder.Bytes(), options));
  std::string text;
  for (const Node& node : graph.nodes) {
    text += graph.values[static_cast<size_t>(node.outputs[0])].name + "=" + node.op + "(";
    for (const int input : node.inputs) text += graph.values[static_cast<size_t>(input)].name + ",";
    text += ")";
    for (const auto& [attribute, value] : node.attributes) {
      if (const float* const real = std::get_if<float>(&value)) text += Concat(attribute, "=", *real);
    }
    text += ";";
  }
  return text;
}

TEST(InlineFunctionsTest, ACallBecomesTheFunctionsNodes) {
  OnnxBuilder builder = Calling("twice");
  *builder.model().add_functions() = Function("twice", {"a"}, {"b"});
  onnx::FunctionProto& twice = *builder.model().mutable_functions(0);
  Put(twice, "Relu", {"a"}, {"y"});  // a name that is taken outside
  Put(twice, "Add", {"y", "a"}, {"b"});
  const auto text = Inlined(builder);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, "twice.0/y=Relu(x,);y=Add(twice.0/y,x,);");
}

TEST(InlineFunctionsTest, CallsNest) {
  OnnxBuilder builder = Calling("outer");
  *builder.model().add_functions() = Function("outer", {"a"}, {"b"});
  Put(*builder.model().mutable_functions(0), "inner", {"a"}, {"t"}).set_domain("local");
  Put(*builder.model().mutable_functions(0), "inner", {"t"}, {"b"}).set_domain("local");
  *builder.model().add_functions() = Function("inner", {"a"}, {"b"});
  Put(*builder.model().mutable_functions(1), "Neg", {"a"}, {"b"});
  const auto text = Inlined(builder);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, "outer.0/t=Neg(x,);y=Neg(outer.0/t,);");
}

TEST(InlineFunctionsTest, AttributesAreTheCallsOrTheirDefault) {
  const auto with = [](const std::map<std::string, Attribute>& attributes, bool has_default) {
    OnnxBuilder builder = Calling("leak", attributes);
    *builder.model().add_functions() = Function("leak", {"a"}, {"b"});
    onnx::FunctionProto& leak = *builder.model().mutable_functions(0);
    onnx::AttributeProto& slope = *Put(leak, "LeakyRelu", {"a"}, {"b"}).add_attribute();
    slope.set_name("alpha");
    slope.set_type(onnx::AttributeProto::FLOAT);
    slope.set_ref_attr_name("slope");
    if (has_default) {  // in a field that IR version 9 has
      onnx::AttributeProto given;
      given.set_name("slope");
      given.set_type(onnx::AttributeProto::FLOAT);
      given.set_f(0.25f);
      leak.mutable_unknown_fields()->AddLengthDelimited(11, given.SerializeAsString());
    }
    const auto text = Inlined(builder);
    EXPECT_THAT(text, IsOk());
    return text.ok() ? *text : std::string();
  };
  EXPECT_EQ(with({{"slope", 0.5f}}, true), "y=LeakyRelu(x,)alpha=0.5;");
  EXPECT_EQ(with({}, true), "y=LeakyRelu(x,)alpha=0.25;");
  EXPECT_EQ(with({}, false), "y=LeakyRelu(x,);");
}

TEST(InlineFunctionsTest, OutputsThatAreInputsAreCopied) {
  OnnxBuilder builder = Calling("same");
  *builder.model().add_functions() = Function("same", {"a"}, {"a"});
  const auto text = Inlined(builder);
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, "y=Identity(x,);");
}

TEST(InlineFunctionsTest, GraphsWithinFunctionsReadWhatIsAroundThem) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Node("pick", {"x", "chosen"}, {"y"}).Output("y");
  builder.graph().mutable_node(0)->set_domain("local");
  auto& chosen = *builder.graph().add_initializer();
  chosen.set_name("chosen");
  chosen.set_data_type(onnx::TensorProto::BOOL);
  chosen.set_raw_data(std::string(1, '\1'));
  *builder.model().add_functions() = Function("pick", {"a", "c"}, {"b"});
  onnx::NodeProto& choice = Put(*builder.model().mutable_functions(0), "If", {"c"}, {"b"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    OnnxBuilder body;
    body.Node(branch[0] == 't' ? "Neg" : "Abs", {"a"}, {"r"}).Output("r");
    onnx::AttributeProto& attribute = *choice.add_attribute();
    attribute.set_name(branch);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    *attribute.mutable_g() = body.graph();
  }
  EXPECT_THAT(Inlined(builder), IsOk());
}

TEST(InlineFunctionsTest, EndlessAndHugeCallsAreRefused) {
  OnnxBuilder builder = Calling("again");
  *builder.model().add_functions() = Function("again", {"a"}, {"b"});
  Put(*builder.model().mutable_functions(0), "again", {"a"}, {"b"}).set_domain("local");
  EXPECT_THAT(Inlined(builder), IsError(kInvalid, "function 'again' calls itself"));

  OnnxBuilder doubling = Calling("f0");
  for (int i = 0; i < 24; ++i) {
    onnx::FunctionProto function = Function(Concat("f", i), {"a"}, {"b"});
    const std::string next = i < 23 ? Concat("f", i + 1) : "Neg";
    for (const auto& [from, to] : {std::pair("a", "t"), std::pair("t", "b")}) {
      onnx::NodeProto& node = Put(function, next, {from}, {to});
      if (i < 23) node.set_domain("local");
    }
    *doubling.model().add_functions() = function;
  }
  EXPECT_THAT(Inlined(doubling), IsError(kInvalid, "stand for more than 65536 nodes"));
}

TEST(InlineFunctionsTest, OperatorsThatDifferBetweenOpsetsAreNamed) {
  OnnxBuilder builder = Calling("old");
  *builder.model().add_functions() = Function("old", {"a"}, {"b"}, 12);
  Put(*builder.model().mutable_functions(0), "Neg", {"a"}, {"t"});
  EXPECT_THAT(Inlined(builder), IsError(kInvalid, "made by nothing"));  // b is not made
  Put(*builder.model().mutable_functions(0), "Softmax", {"t"}, {"b"});
  EXPECT_THAT(Inlined(builder), IsError(StatusCode::kUnimplemented, "'Softmax' differs between them"));
}

TEST(InlineFunctionsTest, MoreInputsThanTheFunctionHasAreRefused) {
  OnnxBuilder builder = Calling("none");
  *builder.model().add_functions() = Function("none", {}, {"b"});
  EXPECT_THAT(Inlined(builder), IsError(kInvalid, "is called with 1 inputs"));
}

}  // namespace
}  // namespace swizzle
