#include "model_loader/fallback/batch_proof.h"

#include <gtest/gtest.h>

#include "model_loader/fallback/load.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::fallback {
namespace {

using swizzle::testing::OnnxBuilder;
using Attributes = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

// Whether the rows of `builder`, with an output of this shape, are proven to be independent.
bool Holds(OnnxBuilder& builder, const Shape& output) {
  auto& shape = *builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t dimension : output) {
    auto& added = *shape.add_dim();
    if (dimension != -1) added.set_dim_value(dimension);
  }
  const auto program = ReadProgram(std::span<const std::byte>(builder.Bytes()));
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() && (*program)->rows_are_independent();
}

// One node from x, of shape [-1, 4, 6], and an initializer c.
bool OneNode(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes,
             const Shape& output, const Shape& constant = {1}) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 6}).Counting("c", constant).Int64s("zero", {1}, {0}).Int64s("two", {1}, {2});
  builder.Int64s("keep", {2}, {0, -1}).Int64s("flat", {2}, {-1, 24});
  builder.Node(op, inputs, {"y"}, attributes).Output("y");
  return Holds(builder, output);
}

TEST(BatchProof, AcceptsAConvolutionalNetwork) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, 8, 8}).Counting("w", {4, 3, 3, 3}).Counting("m", {4, 5}).Counting("b", {5});
  builder.Node("Conv", {"x", "w"}, {"c"}).Node("Elu", {"c"}, {"e"}).Node("Add", {"e", "c"}, {"s"});
  builder.Node("GlobalAveragePool", {"s"}, {"p"}).Node("Flatten", {"p"}, {"f"});
  builder.Node("Gemm", {"f", "m", "b"}, {"g"}).Node("LogSoftmax", {"g"}, {"y"}).Output("y");
  EXPECT_TRUE(Holds(builder, {-1, 5}));
}

TEST(BatchProof, FollowsDimensionZero) {
  EXPECT_TRUE(OneNode("ReduceSum", {"x", "two"}, {}, {-1, 4, 1}));
  EXPECT_FALSE(OneNode("ReduceSum", {"x", "zero"}, {}, {-1, 4, 6}));
  EXPECT_FALSE(OneNode("ReduceSum", {"x"}, {}, {-1, 1, 1}));
  EXPECT_TRUE(OneNode("ReduceMax", {"x"}, {{"axes", Ints{-1}}, {"keepdims", int64_t{0}}}, {-1, 4}));
  EXPECT_TRUE(OneNode("Softmax", {"x"}, {{"axis", int64_t{-2}}}, {-1, 4, 6}));
  EXPECT_FALSE(OneNode("Softmax", {"x"}, {{"axis", int64_t{-3}}}, {-1, 4, 6}));
  EXPECT_FALSE(OneNode("ArgMax", {"x"}, {}, {-1, 4, 6}));
  EXPECT_TRUE(OneNode("ArgMax", {"x"}, {{"axis", int64_t{1}}}, {-1, 1, 6}));
  EXPECT_TRUE(OneNode("Transpose", {"x"}, {{"perm", Ints{0, 2, 1}}}, {-1, 6, 4}));
  EXPECT_FALSE(OneNode("Transpose", {"x"}, {{"perm", Ints{1, 0, 2}}}, {-1, 4, 6}));
  EXPECT_TRUE(OneNode("Reshape", {"x", "keep"}, {}, {-1, 24}));
  EXPECT_FALSE(OneNode("Reshape", {"x", "flat"}, {}, {-1, 24}));
  EXPECT_TRUE(OneNode("Concat", {"x", "x"}, {{"axis", int64_t{1}}}, {-1, 8, 6}));
  EXPECT_FALSE(OneNode("Concat", {"x", "x"}, {{"axis", int64_t{0}}}, {-1, 4, 6}));
}

TEST(BatchProof, KnowsWhatBroadcastsOverRows) {
  EXPECT_TRUE(OneNode("Mul", {"x", "c"}, {}, {-1, 4, 6}, {4, 1}));
  EXPECT_TRUE(OneNode("Mul", {"x", "c"}, {}, {-1, 4, 6}, {1, 4, 6}));
  EXPECT_FALSE(OneNode("Mul", {"x", "c"}, {}, {-1, 4, 6}, {2, 4, 6}));
  EXPECT_FALSE(OneNode("Mul", {"c", "x"}, {}, {-1, 4, 6}, {1, 1, 4, 6}));
  EXPECT_TRUE(OneNode("MatMul", {"x", "c"}, {}, {-1, 4, 2}, {6, 2}));
  EXPECT_FALSE(OneNode("MatMul", {"c", "x"}, {}, {-1, 4, 6}, {4, 4}));
}

TEST(BatchProof, WantsTheBatchDeclaredAndNothingElseFree) {
  const auto relu = [](const Shape& input, const Shape& output) {
    OnnxBuilder builder;
    builder.Input("x", input).Node("Relu", {"x"}, {"y"}).Output("y");
    return Holds(builder, output);
  };
  EXPECT_TRUE(relu({-1, 3}, {-1, 3}));
  EXPECT_FALSE(relu({2, 3}, {2, 3}));
  EXPECT_FALSE(relu({-1, -1}, {-1, -1}));
  EXPECT_FALSE(relu({-1, 3}, {4, 3}));
}

TEST(BatchProof, RefusesWhatLooksAtTheWholeBatch) {
  OnnxBuilder pool;
  pool.Input("x", {-1, 1, 4, 4}).Node("MaxPool", {"x"}, {"p", "y"}, {{"kernel_shape", Ints{2, 2}}}).Output("y");
  EXPECT_FALSE(Holds(pool, {-1, 1, 3, 3}));
  OnnxBuilder quantise;
  quantise.Input("x", {-1, 4}).Node("DynamicQuantizeLinear", {"x"}, {"y", "s", "z"}).Output("y");
  EXPECT_FALSE(Holds(quantise, {-1, 4}));
}

}  // namespace
}  // namespace swizzle::fallback
