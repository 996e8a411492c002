// Attention within windows of sequences of a fixed length, as Swin Transformers have it: what of the reshapes, rolls
// and masks becomes an order of tokens and biases of windows.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model_loader/passes/lower.h"
#include "tests/support/recognised.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;
using testing::Recognised;
using Ints = std::vector<int64_t>;

// An image of 4 x 4 tokens of 4 channels, "image" [batch, 4, 4, 4], in windows of 2 x 2.
OnnxBuilder Image() {
  OnnxBuilder builder(17);
  builder.Int64Input("ids", {-1, 16}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Int64s("as_image", {4}, {-1, 4, 4, 4}).Int64s("as_sequence", {3}, {-1, 16, 4});
  builder.Int64s("cut", {6}, {-1, 2, 2, 2, 2, 4}).Int64s("as_windows", {3}, {-1, 4, 4});
  return builder.Node("Reshape", {"x", "as_image"}, {"image"});
}

// Rolls a dimension, so that what was at `by` comes first.
void Roll(OnnxBuilder& builder, const std::string& from, const std::string& to, int64_t axis, int64_t by) {
  builder.Int64s(to + ".zero", {1}, {0}).Int64s(to + ".by", {1}, {by}).Int64s(to + ".axis", {1}, {axis});
  builder.Int64s(to + ".end", {1}, {int64_t{1} << 40});
  builder.Node("Slice", {from, to + ".by", to + ".end", to + ".axis"}, {to + ".last"});
  builder.Node("Slice", {from, to + ".zero", to + ".by", to + ".axis"}, {to + ".first"});
  builder.Node("Concat", {to + ".last", to + ".first"}, {to}, {{"axis", axis}});
}

// Tokens in windows [batch * 4, 4, 4], of an image.
void Cut(OnnxBuilder& builder, const std::string& image, const std::string& windows) {
  builder.Node("Reshape", {image, "cut"}, {windows + ".cut"});
  builder.Node("Transpose", {windows + ".cut"}, {windows + ".turned"}, {{"perm", Ints{0, 1, 3, 2, 4, 5}}});
  builder.Node("Reshape", {windows + ".turned", "as_windows"}, {windows});
}

// Scores "s" [batch * 4, 2 heads, 4, 4] of "w", which is in windows.
void Score(OnnxBuilder& builder) {
  builder.Int64s("heads", {4}, {0, 0, 2, 2}).Node("Reshape", {"w", "heads"}, {"split"});
  builder.Node("Transpose", {"split"}, {"h"}, {{"perm", Ints{0, 2, 1, 3}}});
  builder.Node("Transpose", {"split"}, {"k"}, {{"perm", Ints{0, 2, 3, 1}}}).Node("MatMul", {"h", "k"}, {"s"});
}

// The image "back" of what scores "t" attend to.
void Attend(OnnxBuilder& builder, const std::string& scores) {
  builder.Node("Softmax", {scores}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "h"}, {"y"});
  builder.Node("Transpose", {"y"}, {"by_token"}, {{"perm", Ints{0, 2, 1, 3}}});
  builder.Node("Reshape", {"by_token", "cut"}, {"cut_back"});
  builder.Node("Transpose", {"cut_back"}, {"turned_back"}, {{"perm", Ints{0, 1, 3, 2, 4, 5}}});
  builder.Node("Reshape", {"turned_back", "as_image"}, {"back"});
}

StatusOr<Network> Lowered(OnnxBuilder& builder, const std::string& image) {
  builder.Node("Reshape", {image, "as_sequence"}, {"sequence"}).Node("Add", {"sequence", "x"}, {"out"}).Output("out");
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, Recognised(builder));
  SWIZZLE_ASSIGN_OR_RETURN(Network network, Lower(std::move(graph)));
  SWIZZLE_RETURN_IF_ERROR(network.Validate());
  return network;
}

std::string OpsOf(const Network& network) {
  std::string ops;
  for (const Layer& layer : network.layers) ops += std::string(OpName(layer.op)) + " ";
  return ops;
}

const std::vector<float>& WeightOf(const Network& network, size_t layer) {
  return network.weights[static_cast<size_t>(network.layers[layer].weight)].matrix.As<DenseMatrix>()->values;
}

std::vector<float> Counting(int64_t count, float step = 1.0f) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(step * static_cast<float>(i));
  return numbers;
}

TEST(WindowsTest, TokensAreOrderedOnceForTheirWindowsAndOnceBack) {
  OnnxBuilder builder = Image();
  Cut(builder, "image", "w");
  Score(builder);
  builder.Floats("biases", {1, 2, 4, 4}, Counting(32))
      .Floats("half", {}, {0.5f})
      .Node("Mul", {"s", "half"}, {"scaled"});
  builder.Node("Add", {"biases", "scaled"}, {"t"});
  Attend(builder, "t");
  const auto network = Lowered(builder, "back");
  ASSERT_THAT(network.status(), IsOk());
  EXPECT_EQ(OpsOf(*network), "Embedding PermuteTokens BiasedAttention PermuteTokens Add ");
  const std::vector<float> in_windows = {0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15};
  EXPECT_EQ(WeightOf(*network, 1), in_windows);
  EXPECT_EQ(WeightOf(*network, 3), in_windows) << "which is its own inverse";
  const Attention& attention = network->layers[2].attention();
  EXPECT_EQ(attention.windows, 4);
  EXPECT_EQ(attention.length, 4);
  EXPECT_EQ(attention.heads, 2);
  EXPECT_EQ(attention.scale, 0.5f);
  EXPECT_EQ(WeightOf(*network, 2), Counting(32)) << "the same for all windows";
}

TEST(WindowsTest, ShiftedWindowsHaveBiasesOfTheirOwn) {
  OnnxBuilder builder = Image();
  Roll(builder, "image", "down", 1, 1);
  Roll(builder, "down", "rolled", 2, 1);
  Cut(builder, "rolled", "w");
  Score(builder);
  builder.Floats("biases", {1, 2, 4, 4}, Counting(32)).Node("Add", {"s", "biases"}, {"biased"});
  builder.Int64s("by_window", {5}, {-1, 4, 2, 4, 4}).Node("Reshape", {"biased", "by_window"}, {"of_windows"});
  builder.Floats("mask", {1, 4, 1, 4, 4}, Counting(64, -100.0f)).Node("Add", {"of_windows", "mask"}, {"masked"});
  builder.Int64s("as_scores", {4}, {-1, 2, 4, 4}).Node("Reshape", {"masked", "as_scores"}, {"t"});
  Attend(builder, "t");
  Roll(builder, "back", "up", 1, -1);
  Roll(builder, "up", "unrolled", 2, -1);
  const auto network = Lowered(builder, "unrolled");
  ASSERT_THAT(network.status(), IsOk());
  EXPECT_EQ(OpsOf(*network), "Embedding PermuteTokens BiasedAttention PermuteTokens Add ");
  EXPECT_EQ(WeightOf(*network, 1), (std::vector<float>{5, 6, 9, 10, 7, 4, 11, 8, 13, 14, 1, 2, 15, 12, 3, 0}));
  EXPECT_EQ(WeightOf(*network, 3), (std::vector<float>{15, 10, 11, 14, 5, 0, 1, 4, 7, 2, 3, 6, 13, 8, 9, 12}));
  ASSERT_EQ(network->layers[2].attention().windows, 4);
  const std::vector<float>& biases = WeightOf(*network, 2);
  ASSERT_EQ(biases.size(), 128);
  for (int head = 0; head < 2; ++head) {
    for (int pair = 0; pair < 64; ++pair) {
      const auto expected = static_cast<float>(head * 16 + pair % 16 - 100 * pair);
      EXPECT_EQ(biases[static_cast<size_t>(head * 64 + pair)], expected) << "head " << head << ", pair " << pair;
    }
  }
}

TEST(WindowsTest, WhatIsMovedBackIsNotMovedAtAll) {
  OnnxBuilder builder = Image();
  builder.Int64s("pads", {8}, {0, 0, 0, 0, 0, 0, 0, 0}).Node("Pad", {"image", "pads"}, {"padded"});
  Roll(builder, "padded", "down", 1, 3);
  Roll(builder, "down", "up", 1, -3);
  builder.Node("Reshape", {"up", "as_sequence"}, {"sequence"}).Node("Tanh", {"sequence"}, {"out"}).Output("out");
  const auto graph = Recognised(builder);
  ASSERT_THAT(graph.status(), IsOk());
  ASSERT_EQ(graph->nodes.size(), 2u);
  EXPECT_EQ(graph->nodes[0].op, "Embedding");
  EXPECT_EQ(graph->nodes[1].op, "Function");
}

TEST(WindowsTest, AnOrderThatIsReadTwiceIsMadeOnce) {
  OnnxBuilder builder = Image();
  Roll(builder, "image", "down", 1, 1);
  builder.Node("Add", {"image", "down"}, {"first"}).Node("Mul", {"first", "down"}, {"product"});
  const auto network = Lowered(builder, "product");
  ASSERT_THAT(network.status(), IsOk());
  EXPECT_EQ(OpsOf(*network), "Embedding PermuteTokens Add Multiply Add ");
  EXPECT_EQ(WeightOf(*network, 1), (std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3}));
}

TEST(WindowsTest, PartsOfSequencesAreRefused) {
  OnnxBuilder builder = Image();
  builder.Int64s("one", {1}, {1}).Int64s("three", {1}, {3});
  builder.Node("Slice", {"image", "one", "three", "one"}, {"part"}).Node("Relu", {"part"}, {"positive"});
  builder.Node("Concat", {"positive", "positive"}, {"twice"}, {{"axis", int64_t{1}}});
  EXPECT_THAT(Lowered(builder, "twice").status(), IsError(StatusCode::kUnimplemented, "only a part of the tokens"));
  OnnxBuilder padded = Image();
  padded.Int64s("pads", {8}, {0, 1, 0, 0, 0, 0, 0, 0}).Node("Pad", {"image", "pads"}, {"wide"});
  EXPECT_THAT(Lowered(padded, "wide").status(), IsError(StatusCode::kUnimplemented, "it adds positions or channels"));
}

TEST(WindowsTest, MasksThatFitNoWindowsAreRefused) {
  OnnxBuilder builder = Image();
  Cut(builder, "image", "w");
  Score(builder);
  builder.Floats("biases", {1, 3, 4, 4}, Counting(48)).Node("Add", {"biases", "s"}, {"t"});
  Attend(builder, "t");
  EXPECT_FALSE(Lowered(builder, "back").ok()) << "of three heads";
  OnnxBuilder causal = Image();
  Cut(causal, "image", "w");
  causal.Int64s("heads", {4}, {0, 0, 2, 2}).Node("Reshape", {"w", "heads"}, {"split"});
  causal.Node("Transpose", {"split"}, {"h"}, {{"perm", Ints{0, 2, 1, 3}}});
  causal.Node("Attention", {"h", "h", "h"}, {"y"}, {{"is_causal", int64_t{1}}});
  causal.Node("Transpose", {"y"}, {"by_token"}, {{"perm", Ints{0, 2, 1, 3}}});
  causal.Node("Reshape", {"by_token", "as_image"}, {"back"});
  EXPECT_FALSE(Lowered(causal, "back").ok());
}

}  // namespace
}  // namespace swizzle
