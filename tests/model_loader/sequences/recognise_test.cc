// What becomes of small graphs of token sequences, as text, and why others are refused. make_encoders.py writes whole
// models in every spelling.
#include "model_loader/sequences/recognise.h"

#include <limits>

#include "gtest/gtest.h"
#include "model_loader/graph/print.h"
#include "model_loader/onnx/onnx_reader.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/recognised.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::Embedded;
using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;
using testing::Recognised;
using Ints = std::vector<int64_t>;

std::string TextOf(const OnnxBuilder& builder) {
  const auto graph = Recognised(builder);
  return graph.ok() ? "\n" + Print(*graph) : graph.status().ToString();
}

TEST(RecogniseSequencesTest, EmbeddingsAndLinearLayers) {
  OnnxBuilder builder = Embedded();
  builder.Counting("places", {9, 4}).Int64s("numbers", {1, 9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  builder.Int64s("one", {}, {1}).Int64s("first", {1}, {2}).Int64s("axis", {1}, {1}).Int64s("none", {1}, {0});
  builder.Node("Shape", {"ids"}, {"s"}).Node("Gather", {"s", "one"}, {"n"}).Node("Unsqueeze", {"n", "none"}, {"end"});
  builder.Node("Slice", {"numbers", "none", "end", "axis"}, {"p"}).Node("Gather", {"places", "p"}, {"y"});
  builder.Node("Add", {"x", "y"}, {"z"});
  builder.Counting("w", {4, 1}).Floats("b", {1}, {3}).Node("MatMul", {"z", "w"}, {"m"}).Node("Add", {"b", "m"}, {"l"});
  builder.Node("Squeeze", {"l", "last"}, {"out"}).Int64s("last", {1}, {-1}).Output("out").Output("z");
  EXPECT_EQ(TextOf(builder), R"(
input %ids: INT64[N,1]
constant %x_node.table: FP32[5,4]
constant %y_node.table: FP32[9,4]
constant %m_node.weight: FP32[1,4,1,1] = {1,2,3,4}
constant %out.scale: FP32[1] = {1}
constant %out.shift: FP32[1] = {3}
%x_node = swizzle.Embedding(%ids,%x_node.table) {offset=0} "x_node" -> FP32[N,4]
%y_node = swizzle.Embedding(_,%y_node.table) {offset=0} "y_node" -> FP32[N,4]
%z_node = swizzle.Add(%x_node,%y_node) "z_node" -> FP32[N,4]
%m_node = swizzle.Conv(%z_node,%m_node.weight) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "m_node" -> FP32[N,1]
%out = swizzle.Affine(%m_node,%out.scale,%out.shift) "out" -> FP32[N,1]
output "out" = %out
output "z" = %z_node
)");
}

// The mean over channels, centred, squared, and so on.
TEST(RecogniseSequencesTest, WrittenOutLayerNorm) {
  OnnxBuilder builder = Embedded();
  builder.Floats("two", {}, {2}).Floats("epsilon", {}, {0.5f}).Floats("scale", {4}, {1, 2, 3, 4});
  builder.Floats("shift", {4}, {5, 6, 7, 8});
  builder.Node("ReduceMean", {"x"}, {"mean"}, {{"axes", Ints{-1}}}).Node("Sub", {"x", "mean"}, {"centred"});
  builder.Node("Pow", {"centred", "two"}, {"squares"})
      .Node("ReduceMean", {"squares"}, {"variance"}, {{"axes", Ints{2}}});
  builder.Node("Add", {"epsilon", "variance"}, {"shifted"}).Node("Sqrt", {"shifted"}, {"deviation"});
  builder.Node("Div", {"centred", "deviation"}, {"normal"}).Node("Mul", {"scale", "normal"}, {"scaled"});
  builder.Node("Add", {"scaled", "shift"}, {"y"}).Output("y").Output("normal");
  EXPECT_EQ(TextOf(builder), R"(
input %ids: INT64[N,1]
constant %x_node.table: FP32[5,4]
constant %y_node.scale: FP32[4] = {1,2,3,4}
constant %y_node.shift: FP32[4] = {5,6,7,8}
constant %normal.scale: FP32[4] = {1,1,1,1}
constant %normal.shift: FP32[4] = {0,0,0,0}
%x_node = swizzle.Embedding(%ids,%x_node.table) {offset=0} "x_node" -> FP32[N,4]
%y_node = swizzle.LayerNorm(%x_node,%y_node.scale,%y_node.shift) {epsilon=0.5} "y_node" -> FP32[N,4]
%normal = swizzle.LayerNorm(%x_node,%normal.scale,%normal.shift) {epsilon=0.5} "normal" -> FP32[N,4]
output "y" = %y_node
output "normal" = %normal
)");
}

// One head on "x", whose scores "s" are to be masked and become the scores "t".
OnnxBuilder HalfAttention() {
  OnnxBuilder builder = Embedded();
  builder.Int64Input("mask", {-1, -1});
  builder.Node("Transpose", {"x"}, {"k"}, {{"perm", Ints{0, 2, 1}}}).Node("MatMul", {"x", "k"}, {"q"});
  builder.Floats("half", {}, {0.5f}).Node("Mul", {"q", "half"}, {"s"});
  return builder;
}

OnnxBuilder& Attend(OnnxBuilder& builder, const std::string& scores) {
  return builder.Node("Softmax", {scores}, {"p"}, {{"axis", int64_t{-1}}})
      .Node("MatMul", {"p", "x"}, {"y"})
      .Output("y");
}

// Of the mask, as FP32 [batch, 1, length], with a bias "m" of this number.
OnnxBuilder AdditiveMask(float bias, const std::string& axis = "one") {
  OnnxBuilder builder = HalfAttention();
  builder.Int64s("one", {1}, {1}).Int64s("two", {1}, {2}).Floats("unit", {}, {1}).Floats("bias", {}, {bias});
  builder.Node("Unsqueeze", {"mask", axis}, {"u"}).Node("Cast", {"u"}, {"c"}, {{"to", int64_t{1}}});
  builder.Node("Sub", {"unit", "c"}, {"i"}).Node("Mul", {"i", "bias"}, {"m"}).Node("Add", {"s", "m"}, {"t"});
  return builder;
}

TEST(RecogniseSequencesTest, AttentionWithAnAdditiveMask) {
  OnnxBuilder builder = AdditiveMask(-10000);
  EXPECT_EQ(TextOf(Attend(builder, "t")), R"(
input %ids: INT64[N,1]
input %mask: INT64[N,1]
constant %x_node.table: FP32[5,4]
%x_node = swizzle.Embedding(%ids,%x_node.table) {offset=0} "x_node" -> FP32[N,4]
%y_node = swizzle.Attention(%x_node,%x_node,%x_node) {heads=1,scale=0.5} "y_node" -> FP32[N,4]
output "y" = %y_node
)");
  const auto graph = Recognised(builder);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->sequences->mask, graph->inputs[1]);
  EXPECT_EQ(graph->sequences->masked_bias, -10000.0f);
  EXPECT_TRUE(graph->sequences->skips_masked);
}

TEST(RecogniseSequencesTest, ASmallBiasLetsMaskedTokensBeRead) {
  OnnxBuilder builder = AdditiveMask(-100);
  const auto graph = Recognised(Attend(builder, "t"));
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->sequences->masked_bias, -100.0f);
  EXPECT_FALSE(graph->sequences->skips_masked);
}

TEST(RecogniseSequencesTest, WhereMasksAsWell) {
  OnnxBuilder builder = HalfAttention();
  const float infinity = std::numeric_limits<float>::infinity();
  builder.Int64s("one", {1}, {1}).Int64s("zero", {}, {0}).Floats("lowest", {}, {-infinity}).Floats("none", {}, {0});
  builder.Node("Unsqueeze", {"mask", "one"}, {"u"}).Node("Equal", {"u", "zero"}, {"e"}).Node("Not", {"e"}, {"kept"});
  builder.Node("Where", {"kept", "s", "lowest"}, {"t"}).Node("Softmax", {"t"}, {"r"}, {{"axis", int64_t{2}}});
  builder.Node("IsNaN", {"r"}, {"nan"}).Node("Where", {"nan", "none", "r"}, {"p"});
  builder.Node("MatMul", {"p", "x"}, {"y"}).Output("y");
  const auto graph = Recognised(builder);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->nodes.back().op, "Attention");
  EXPECT_EQ(graph->sequences->masked_bias, -infinity);
  EXPECT_TRUE(graph->sequences->skips_masked);
}

TEST(RecogniseSequencesTest, AMaskOfOnesIsNone) {
  OnnxBuilder builder = HalfAttention();
  builder.Node("Shape", {"ids"}, {"n"});
  builder.Node("ConstantOfShape", {"n"}, {"ones"}, {{"value", Tensor::Floats({1}, std::vector<float>{1})}});
  builder.Floats("unit", {}, {1}).Int64s("one", {1}, {1}).Node("Sub", {"unit", "ones"}, {"i"});
  builder.Node("Unsqueeze", {"i", "one"}, {"m"}).Node("Add", {"s", "m"}, {"t"});
  const auto graph = Recognised(Attend(builder, "t"));
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->sequences->mask, kNoValue);
  EXPECT_FALSE(graph->sequences->skips_masked);
}

TEST(RecogniseSequencesTest, PackedQueriesKeysAndValuesAreTakenApart) {
  OnnxBuilder builder = Embedded();
  builder.Counting("w", {4, 6}).Floats("b", {6}, {1, 2, 3, 4, 5, 6});
  builder.MicrosoftNode("Attention", {"x", "w", "b"}, {"y"}, {{"num_heads", int64_t{2}}}).Output("y");
  EXPECT_EQ(TextOf(builder), R"(
input %ids: INT64[N,1]
constant %x_node.table: FP32[5,4]
constant %y_node.weight: FP32[2,4,1,1] = {1,7,13,19,2,8,14,20}
constant %y_node.scale: FP32[2] = {1,1}
constant %y_node.shift: FP32[2] = {1,2}
constant %y_node.weight: FP32[2,4,1,1] = {3,9,15,21,4,10,16,22}
constant %y_node.scale: FP32[2] = {1,1}
constant %y_node.shift: FP32[2] = {3,4}
constant %y_node.weight: FP32[2,4,1,1] = {5,11,17,23,6,12,18,24}
constant %y_node.scale: FP32[2] = {1,1}
constant %y_node.shift: FP32[2] = {5,6}
%x_node = swizzle.Embedding(%ids,%x_node.table) {offset=0} "x_node" -> FP32[N,4]
%y_node.2 = swizzle.Conv(%x_node,%y_node.weight) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "y_node.2" -> FP32[N,2]
%y_node.3 = swizzle.Affine(%y_node.2,%y_node.scale,%y_node.shift) "y_node.3" -> FP32[N,2]
%y_node.4 = swizzle.Conv(%x_node,%y_node.weight) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "y_node.4" -> FP32[N,2]
%y_node.5 = swizzle.Affine(%y_node.4,%y_node.scale,%y_node.shift) "y_node.5" -> FP32[N,2]
%y_node.6 = swizzle.Conv(%x_node,%y_node.weight) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "y_node.6" -> FP32[N,2]
%y_node.7 = swizzle.Affine(%y_node.6,%y_node.scale,%y_node.shift) "y_node.7" -> FP32[N,2]
%y_node.8 = swizzle.Attention(%y_node.3,%y_node.5,%y_node.7) {heads=2,scale=1} "y_node.8" -> FP32[N,2]
output "y" = %y_node.8
)");
}

TEST(RecogniseSequencesTest, HeadsOfQueriesMayShareKeysAndValues) {
  const auto recognised = [](int64_t kv_heads) {
    OnnxBuilder builder(23);
    builder.Int64Input("ids", {-1, -1}).Counting("words", {5, 8}).Node("Gather", {"words", "ids"}, {"x"});
    builder.Counting("w", {8, 2 * kv_heads}).Node("MatMul", {"x", "w"}, {"k"});
    builder.Counting("u", {8, 3 * kv_heads}).Node("MatMul", {"x", "u"}, {"v"});
    builder.Node("Attention", {"x", "k", "v"}, {"y"}, {{"q_num_heads", int64_t{4}}, {"kv_num_heads", kv_heads}});
    return Recognised(builder.Output("y"));
  };
  for (const int64_t kv_heads : {1, 2}) {
    const auto graph = recognised(kv_heads);
    ASSERT_THAT(graph, IsOk());
    const Node& attention = graph->nodes.back();
    EXPECT_EQ(attention.op, "Attention");
    EXPECT_EQ(std::get<int64_t>(attention.attributes.at("group_size")), 4 / kv_heads);
    EXPECT_EQ(graph->ShapeOf(attention.inputs[1]), (Shape{kFreeBatch, 2 * kv_heads}));
    EXPECT_EQ(graph->ShapeOf(attention.outputs[0]), (Shape{kFreeBatch, 12}));
  }
  EXPECT_THAT(recognised(3), IsError(StatusCode::kUnimplemented, "[3] heads of keys and values do not serve [4]"));
}

TEST(RecogniseSequencesTest, MeansOfWhatTheMaskLeaves) {
  OnnxBuilder builder = AdditiveMask(-10000);
  Attend(builder, "t");
  builder.Int64s("last", {1}, {-1}).Node("Cast", {"mask"}, {"f"}, {{"to", int64_t{1}}});
  builder.Node("Unsqueeze", {"f", "last"}, {"g"}).Node("Mul", {"g", "y"}, {"masked"});
  builder.Node("ReduceSum", {"masked", "one"}, {"sum"}, {{"keepdims", int64_t{0}}});
  builder.Node("ReduceSum", {"g", "one"}, {"count"}, {{"keepdims", int64_t{0}}});
  builder.Floats("least", {}, {1e-9f}).Node("Clip", {"count", "least"}, {"safe"});
  builder.Node("Div", {"sum", "safe"}, {"mean"}).Output("mean");
  const auto graph = Recognised(builder);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->nodes.back().op, "MeanTokens");
  EXPECT_FALSE(graph->values[graph->outputs[1].value].per_token);
  EXPECT_TRUE(graph->sequences->skips_masked);
}

TEST(RecogniseSequencesTest, FixedShapesAreNumbers) {
  OnnxBuilder builder;
  builder.Int64Input("ids", {1, 4}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Int64s("heads", {4}, {1, 4, 2, 2}).Int64s("joined", {2}, {4, 4}).Int64s("whole", {3}, {1, 4, 4});
  builder.Node("Reshape", {"x", "heads"}, {"h"}).Node("Reshape", {"h", "joined"}, {"j"});
  builder.Counting("w", {4, 3}).Node("Gemm", {"j", "w"}, {"g"}).Int64s("back", {3}, {1, 4, 3});
  builder.Node("Reshape", {"g", "back"}, {"y"}).Output("y");
  EXPECT_EQ(TextOf(builder), R"(
input %ids: INT64[N,1]
constant %x_node.table: FP32[5,4]
constant %g_node.weight: FP32[3,4,1,1]
%x_node = swizzle.Embedding(%ids,%x_node.table) {offset=0} "x_node" -> FP32[N,4]
%g_node = swizzle.Conv(%x_node,%g_node.weight) {dilations=[1,1],group=1,kernel_shape=[1,1],pads=[0,0,0,0],strides=[1,1]} "g_node" -> FP32[N,3]
output "y" = %g_node
)");
}

TEST(RecogniseSequencesTest, RefusesWhatItCannotProve) {
  const auto refusal = [](OnnxBuilder builder) { return Recognised(builder).status(); };
  const auto unimplemented = [](const std::string& text) { return IsError(StatusCode::kUnimplemented, text); };
  OnnxBuilder queries = AdditiveMask(-10000, "two");
  EXPECT_THAT(refusal(Attend(queries, "t")), unimplemented("Add node 't_node' (opset 17)"));
  OnnxBuilder positive = AdditiveMask(5);
  EXPECT_THAT(refusal(Attend(positive, "t")), unimplemented("its mask adds 5"));
  OnnxBuilder twice = AdditiveMask(-10000);
  twice.Node("Add", {"t", "m"}, {"tt"});
  EXPECT_THAT(refusal(Attend(twice, "tt")), unimplemented("scores are masked twice"));
  OnnxBuilder both = AdditiveMask(-10000);
  Attend(both, "t").Node("Gather", {"words", "mask"}, {"z"}).Output("z");
  EXPECT_THAT(refusal(both), unimplemented("'mask' is read both as ids and as a mask"));
  OnnxBuilder some = AdditiveMask(-10000);
  Attend(some, "t").Node("Softmax", {"s"}, {"p2"}, {{"axis", int64_t{2}}}).Node("MatMul", {"p2", "x"}, {"z"});
  EXPECT_THAT(refusal(some.Output("z")), unimplemented("some attention is masked and some is not"));
  OnnxBuilder mean = AdditiveMask(-10000);
  Attend(mean, "t").Node("ReduceMean", {"y"}, {"z"}, {{"axes", Ints{1}}}).Output("z");
  EXPECT_THAT(refusal(mean), unimplemented("the mean of tokens is of masked ones too"));
  OnnxBuilder function = Embedded();
  function.Node("Mul", {"x", "x"}, {"y"}).Output("y");
  EXPECT_THAT(refusal(function), unimplemented("an element-wise function is none of those that kernels compute"));
  OnnxBuilder swapped = Embedded();
  swapped.Node("Transpose", {"x"}, {"y"}, {{"perm", Ints{1, 0, 2}}}).Output("y");
  EXPECT_THAT(refusal(swapped), unimplemented("graph output 'y' of shape [S,B,4] does not begin with the batch"));
  OnnxBuilder axis = Embedded();
  axis.Node("Softmax", {"x"}, {"y"}, {{"axis", int64_t{1}}}).Output("y");
  EXPECT_THAT(refusal(axis), unimplemented("Softmax node 'y_node' (opset 17)"));
}

// What nobody needs may be as strange as it likes.
TEST(RecogniseSequencesTest, LeavesOutWhatNothingReads) {
  OnnxBuilder builder = Embedded();
  builder.Node("Mul", {"x", "x"}, {"y"}).Node("Relu", {"x"}, {"z"}).Output("z");
  const auto graph = Recognised(builder);
  ASSERT_THAT(graph, IsOk());
  EXPECT_EQ(graph->nodes.size(), 2u);
}

// Each node shares one large constant with the others and would make a copy of it: layers of a model may, until copies
// are more than a gigabyte. Others may run what is refused for that.
// As in ALBERT, whose layers have all of their weights in common.
TEST(RecogniseSequencesTest, LayersShareConstants) {
  constexpr int64_t kChannels = 1 << 10;
  OnnxBuilder builder;
  builder.Int64Input("ids", {-1, -1}).Counting("words", {2, kChannels}).Counting("w", {kChannels, kChannels});
  builder.Node("Gather", {"words", "ids"}, {"x0"});
  for (int i = 0; i < 40; ++i) builder.Node("MatMul", {Concat("x", i), "w"}, {Concat("x", i + 1)});
  const auto graph = Recognised(builder.Output("x40"));
  ASSERT_THAT(graph, IsOk());
  int64_t elements = 0;
  for (const Value& value : graph->values) elements += value.constant ? value.constant->elements() : 0;
  EXPECT_LT(elements, 2 * kChannels * kChannels);
}

TEST(RecogniseSequencesTest, BoundsNewConstants) {
  constexpr int64_t kChannels = 1 << 10;
  OnnxBuilder builder;
  builder.Int64Input("ids", {-1, -1}).Counting("words", {2, kChannels}).Counting("w", {kChannels, kChannels});
  builder.Node("Gather", {"words", "ids"}, {"x0"});
  for (int i = 0; i < 280; ++i) {
    builder.Floats(Concat("s", i), {1}, {static_cast<float>(i)}).Node("Mul", {"w", Concat("s", i)}, {Concat("w", i)});
    builder.Node("MatMul", {Concat("x", i), Concat("w", i)}, {Concat("x", i + 1)});
  }
  EXPECT_THAT(Recognised(builder.Output("x280")).status(),
              IsError(StatusCode::kUnimplemented, "elements of new constants"));
}

TEST(RecogniseSequencesTest, SurvivesFlippedBits) {
  OnnxBuilder builder = AdditiveMask(-10000);
  const std::vector<std::byte> bytes = Attend(builder, "t").Bytes();
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; bit += 3) {
      std::vector<std::byte> flipped = bytes;
      flipped[i] ^= std::byte{1} << bit;
      auto graph = ReadOnnx(flipped);
      Status status = graph.ok() ? RunPasses(*graph).status() : graph.status();
      if (status.ok()) status = Lower(*std::move(graph)).status();
      if (status.ok()) continue;
      ++refused;
      EXPECT_NE(status.code(), StatusCode::kInternal) << status;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(RecogniseSequencesTest, AGraphWithoutNodesIsNone) {
  OnnxBuilder builder;
  builder.Int64Input("ids", {-1, 3}).Output("ids");
  EXPECT_THAT(Recognised(builder), IsError(StatusCode::kUnimplemented, "graph output 'ids': it is no activation"));
}

}  // namespace
}  // namespace swizzle
