// Rotary embeddings in several spellings: what of a graph becomes the turning of queries and keys.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model_loader/passes/lower.h"
#include "tests/support/recognised.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::Lowered;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;
using Names = std::vector<std::string>;

constexpr float kSlow = 0.01f;    // the second frequency; the first is 1
constexpr int64_t kHeadSize = 4;  // channels of a head, of which there are two

// Ids as "x" [batch, length, 8], of which linear layers make "q", "k" and "v" [batch, heads, length, 4], keys and
// values of `kv_heads`; "places" are positions [length].
OnnxBuilder Heads(int64_t kv_heads = 2) {
  OnnxBuilder builder(17);
  builder.Int64Input("ids", {-1, -1}).Counting("words", {5, 8}).Node("Gather", {"words", "ids"}, {"x"});
  for (const auto& [name, heads] :
       std::vector<std::pair<std::string, int64_t>>{{"q", 2}, {"k", kv_heads}, {"v", kv_heads}}) {
    builder.Counting("w" + name, {8, heads * kHeadSize}).Node("MatMul", {"x", "w" + name}, {name + "_all"});
    builder.Int64s("split_" + name, {4}, {0, 0, heads, kHeadSize})
        .Node("Reshape", {name + "_all", "split_" + name}, {name + "_split"});
    builder.Node("Transpose", {name + "_split"}, {name}, {{"perm", Ints{0, 2, 1, 3}}});
  }
  builder.Int64s("zero", {}, {0}).Int64s("one", {}, {1}).Int64s("i0", {1}, {0}).Int64s("i1", {1}, {1});
  builder.Int64s("i2", {1}, {2}).Int64s("i3", {1}, {3}).Int64s("i4", {1}, {4});
  builder.Node("Shape", {"ids"}, {"shape"}).Node("Gather", {"shape", "one"}, {"length"});
  return builder.Node("Range", {"zero", "length", "one"}, {"places"});
}

// "cos" and "sin" [length, 2] of positions times frequencies.
void AddWaves(OnnxBuilder& builder) {
  builder.Node("Cast", {"places"}, {"real"}, {{"to", int64_t{1}}}).Floats("frequencies", {1, 2}, {1.0f, kSlow});
  builder.Node("Unsqueeze", {"real", "i1"}, {"column"}).Node("MatMul", {"column", "frequencies"}, {"angles"});
  builder.Node("Cos", {"angles"}, {"cos"}).Node("Sin", {"angles"}, {"sin"});
}

// As transformers has it: x * cos + (-second half, first half) * sin.
void TurnHalves(OnnxBuilder& builder, const std::string& x, const std::string& cos, const std::string& sin) {
  const auto name = [&](const char* suffix) { return x + suffix; };
  builder.Node("Slice", {x, "i0", "i2", "i3"}, {name("_a")}).Node("Slice", {x, "i2", "i4", "i3"}, {name("_b")});
  builder.Node("Neg", {name("_b")}, {name("_n")});
  builder.Node("Concat", {name("_n"), name("_a")}, {name("_h")}, {{"axis", int64_t{-1}}});
  builder.Node("Mul", {x, cos}, {name("_c")}).Node("Mul", {name("_h"), sin}, {name("_s")});
  builder.Node("Add", {name("_c"), name("_s")}, {name("_turned")});
}

// Attention of "q_turned", "k_turned" and "v" as the output "out".
OnnxBuilder AttendTurned(OnnxBuilder builder, const std::string& keys = "k_turned", const std::string& values = "v") {
  builder.Node("Transpose", {keys}, {"kt"}, {{"perm", Ints{0, 1, 3, 2}}}).Node("MatMul", {"q_turned", "kt"}, {"s"});
  builder.Node("Softmax", {"s"}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", values}, {"y"});
  builder.Node("Transpose", {"y"}, {"merged"}, {{"perm", Ints{0, 2, 1, 3}}}).Int64s("rows", {3}, {0, 0, 8});
  return builder.Node("Reshape", {"merged", "rows"}, {"out"}).Output("out");
}

std::vector<Layer> TurnsOf(const Network& network) {
  std::vector<Layer> turns;
  std::ranges::copy_if(network.layers, std::back_inserter(turns),
                       [](const Layer& layer) { return layer.op == Op::kRotary; });
  return turns;
}

// The columns of a constant that counts, of so many, which make what a layer turns.
std::vector<int64_t> ChannelsTurned(const Network& network, const Layer& turn, float columns = 8) {
  const auto maker = std::ranges::find(network.layers, turn.inputs[0], &Layer::output);
  const DenseMatrix matrix = network.weights[maker->weight].ToDense();
  const float step = matrix.values[1] - matrix.values[0];  // from one row of the constant to the next
  std::vector<int64_t> channels;
  for (int64_t row = 0; row < matrix.rows; ++row) {
    channels.push_back(std::lround((matrix.values[row * matrix.cols] - matrix.values[0]) / step * columns));
  }
  return channels;
}

// Queries and keys are turned by one table of cosines and sines of positions.
void ExpectWaves(const Network& network, int32_t kv_heads = 2) {
  const std::vector<Layer> turns = TurnsOf(network);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].weight, turns[1].weight);
  EXPECT_EQ(turns[0].rotation(), (Rotation{2, kHeadSize, 2}));
  EXPECT_EQ(turns[1].rotation(), (Rotation{kv_heads, kHeadSize, 2}));
  const DenseMatrix table = network.weights[turns[0].weight].ToDense();
  ASSERT_EQ(table.cols, 4);
  for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{7}, table.rows - 1}) {
    const double fast = static_cast<double>(position), slow = static_cast<float>(position) * kSlow;
    const double expected[] = {std::cos(fast), std::cos(slow), std::sin(fast), std::sin(slow)};
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(table.values[position * 4 + i], expected[i], 1e-6) << "position " << position << ", " << i;
    }
  }
}

TEST(RotaryTest, HalvesAreTurnedByComputedAngles) {
  OnnxBuilder builder = Heads();
  AddWaves(builder);
  for (const char* wave : {"cos", "sin"}) {
    builder.Node("Concat", {wave, wave}, {Concat(wave, "_both")}, {{"axis", int64_t{-1}}});
  }
  for (const char* x : {"q", "k"}) TurnHalves(builder, x, "cos_both", "sin_both");
  const auto network = Lowered(AttendTurned(builder));
  ASSERT_THAT(network, IsOk());
  ExpectWaves(*network);
  EXPECT_EQ(network->LookupLimit(-1), int64_t{1} << 15);
  EXPECT_EQ(network->layers.back().op, Op::kAttention);
}

// What scales both is the attention's to do, so that both are turned by one table.
TEST(RotaryTest, ScalesAreTheAttentions) {
  OnnxBuilder builder = Heads();
  AddWaves(builder);
  for (const char* wave : {"cos", "sin"}) {
    builder.Node("Concat", {wave, wave}, {Concat(wave, "_both")}, {{"axis", int64_t{-1}}});
  }
  for (const char* x : {"q", "k"}) TurnHalves(builder, x, "cos_both", "sin_both");
  builder.Floats("half", {}, {0.5f}).Node("Mul", {"q_turned", "half"}, {"q_scaled"});
  builder.Node("Transpose", {"k_turned"}, {"kt"}, {{"perm", Ints{0, 1, 3, 2}}})
      .Node("MatMul", {"q_scaled", "kt"}, {"s"});
  builder.Node("Softmax", {"s"}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "v"}, {"y"});
  builder.Node("Transpose", {"y"}, {"merged"}, {{"perm", Ints{0, 2, 1, 3}}}).Int64s("rows", {3}, {0, 0, 8});
  const auto network = Lowered(builder.Node("Reshape", {"merged", "rows"}, {"out"}).Output("out"));
  ASSERT_THAT(network, IsOk());
  ExpectWaves(*network);
  EXPECT_EQ(network->layers.back().attention().scale, 0.5f);
}

// As GPT-J has it: every second channel and the next, which products of queries and keys may have in any order.
TEST(RotaryTest, NeighboursAreTurnedAsHalves) {
  OnnxBuilder builder = Heads();
  AddWaves(builder);
  for (const std::string x : {"q", "k"}) {
    builder.Node("Slice", {x, "i0", "i4", "i3", "i2"}, {x + "_a"})
        .Node("Slice", {x, "i1", "i4", "i3", "i2"}, {x + "_b"});
    for (const std::string part : {"_a", "_b"}) {
      builder.Node("Mul", {x + part, "cos"}, {x + part + "c"}).Node("Mul", {x + part, "sin"}, {x + part + "s"});
    }
    builder.Node("Sub", {x + "_ac", x + "_bs"}, {x + "_0"}).Node("Add", {x + "_bc", x + "_as"}, {x + "_1"});
    builder.Node("Unsqueeze", {x + "_0", "i4"}, {x + "_00"}).Node("Unsqueeze", {x + "_1", "i4"}, {x + "_11"});
    builder.Node("Concat", {x + "_00", x + "_11"}, {x + "_p"}, {{"axis", int64_t{-1}}});
    builder.Int64s(x + "_to", {4}, {0, 0, 0, -1}).Node("Reshape", {x + "_p", x + "_to"}, {x + "_turned"});
  }
  const auto network = Lowered(AttendTurned(builder));
  ASSERT_THAT(network, IsOk());
  ExpectWaves(*network);
  for (const Layer& turn : TurnsOf(*network)) {
    EXPECT_EQ(ChannelsTurned(*network, turn), (Ints{0, 2, 1, 3, 4, 6, 5, 7}));
  }
}

// Caches of cosines and sines, of which a sequence takes as many rows as it is long; other channels stay.
TEST(RotaryTest, TablesTurnAPartOfEachHead) {
  OnnxBuilder builder = Heads();
  builder.Floats("cos_cache", {6, 1}, {1, 2, 3, 4, 5, 6}).Floats("sin_cache", {6, 1}, {-1, -2, -3, -4, -5, -6});
  builder.Node("Unsqueeze", {"length", "i0"}, {"end"}).Node("Slice", {"cos_cache", "i0", "end", "i0"}, {"cos"});
  builder.Node("Gather", {"sin_cache", "places"}, {"sin"});
  for (const std::string x : {"q", "k"}) {
    builder.Node("Slice", {x, "i0", "i1", "i3"}, {x + "_a"}).Node("Slice", {x, "i1", "i2", "i3"}, {x + "_b"});
    builder.Node("Slice", {x, "i2", "i4", "i3"}, {x + "_rest"});
    for (const std::string part : {"_a", "_b"}) {
      builder.Node("Mul", {x + part, "cos"}, {x + part + "c"}).Node("Mul", {"sin", x + part}, {x + part + "s"});
    }
    builder.Node("Sub", {x + "_ac", x + "_bs"}, {x + "_0"}).Node("Add", {x + "_as", x + "_bc"}, {x + "_1"});
    builder.Node("Concat", {x + "_0", x + "_1", x + "_rest"}, {x + "_turned"}, {{"axis", int64_t{3}}});
  }
  const auto network = Lowered(AttendTurned(builder));
  ASSERT_THAT(network, IsOk());
  const std::vector<Layer> turns = TurnsOf(*network);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].rotation(), (Rotation{2, kHeadSize, 1}));
  EXPECT_EQ(network->weights[turns[0].weight].ToDense().values,
            (std::vector<float>{1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6}));
  EXPECT_EQ(network->LookupLimit(-1), 6);
}

// A head of keys and values that two heads of queries share stands once.
TEST(RotaryTest, HeadsThatAreSharedStandOnce) {
  OnnxBuilder builder = Heads(1);
  AddWaves(builder);
  for (const char* wave : {"cos", "sin"}) {
    builder.Node("Concat", {wave, wave}, {Concat(wave, "_both")}, {{"axis", int64_t{-1}}});
  }
  for (const char* x : {"q", "k"}) TurnHalves(builder, x, "cos_both", "sin_both");
  builder.Node("Shape", {"q"}, {"as_queries"});
  builder.Node("Expand", {"k_turned", "as_queries"}, {"keys"}).Node("Expand", {"v", "as_queries"}, {"values"});
  const auto network = Lowered(AttendTurned(builder, "keys", "values"));
  ASSERT_THAT(network, IsOk());
  ExpectWaves(*network, 1);
  EXPECT_EQ(ChannelsTurned(*network, TurnsOf(*network)[1], kHeadSize), (Ints{0, 1, 2, 3}));
  const Layer& attention = network->layers.back();
  EXPECT_EQ(attention.attention().heads, 2);
  EXPECT_EQ(attention.attention().group_size, 2);
  EXPECT_EQ(network->values[attention.inputs[2]].channels, kHeadSize);
  EXPECT_EQ(network->values[attention.output].channels, 2 * kHeadSize);
}

// Where keys alone are shared, their heads are repeated.
TEST(RotaryTest, KeysAndValuesAreSharedAlike) {
  OnnxBuilder builder = Heads(1);
  builder.Node("Shape", {"q"}, {"as_queries"}).Node("Expand", {"k", "as_queries"}, {"keys"});
  builder.Node("Identity", {"q"}, {"q_turned"});
  const auto network = Lowered(AttendTurned(builder, "keys", "q"));
  ASSERT_THAT(network, IsOk());
  const Layer& attention = network->layers.back();
  EXPECT_EQ(attention.attention().group_size, 1);
  EXPECT_EQ(network->values[attention.inputs[1]].channels, 2 * kHeadSize);
}

TEST(RotaryTest, WhatTurnsHeadsDifferentlyIsRefused) {
  OnnxBuilder builder = Heads();
  builder.Floats("factors", {2, 1, 1}, {1, 2}).Node("Cast", {"places"}, {"real"}, {{"to", int64_t{1}}});
  builder.Node("Unsqueeze", {"real", "i1"}, {"column"}).Node("Mul", {"column", "factors"}, {"angles"});
  builder.Node("Cos", {"angles"}, {"cos"}).Node("Sin", {"angles"}, {"sin"});
  for (const char* x : {"q", "k"}) TurnHalves(builder, x, "cos", "sin");
  EXPECT_THAT(Lowered(AttendTurned(builder)), IsError(StatusCode::kUnimplemented, "heads are not turned alike"));
}

// A sum that is no turning, whose second sine has the wrong sign.
TEST(RotaryTest, WhatIsNoRotationIsRefused) {
  OnnxBuilder builder = Heads();
  AddWaves(builder);
  for (const std::string x : {"q", "k"}) {
    builder.Node("Slice", {x, "i0", "i2", "i3"}, {x + "_a"}).Node("Slice", {x, "i2", "i4", "i3"}, {x + "_b"});
    for (const std::string part : {"_a", "_b"}) {
      builder.Node("Mul", {x + part, "cos"}, {x + part + "c"}).Node("Mul", {x + part, "sin"}, {x + part + "s"});
    }
    builder.Node("Add", {x + "_ac", x + "_bs"}, {x + "_0"}).Node("Add", {x + "_as", x + "_bc"}, {x + "_1"});
    builder.Node("Concat", {x + "_0", x + "_1"}, {x + "_turned"}, {{"axis", int64_t{3}}});
  }
  EXPECT_THAT(Lowered(AttendTurned(builder)), IsError(StatusCode::kUnimplemented, "rotary embedding"));
}

// Sines and cosines that are added to what words mean are rows of a table.
TEST(RotaryTest, ComputedPositionsAreEmbedded) {
  OnnxBuilder builder(17);
  builder.Int64Input("ids", {-1, -1}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Int64s("zero", {}, {0}).Int64s("one", {}, {1}).Int64s("i1", {1}, {1});
  builder.Node("Shape", {"ids"}, {"shape"}).Node("Gather", {"shape", "one"}, {"length"});
  AddWaves(builder.Node("Range", {"zero", "length", "one"}, {"places"}));
  builder.Node("Concat", {"sin", "cos"}, {"both"}, {{"axis", int64_t{-1}}}).Node("Add", {"x", "both"}, {"out"});
  const auto network = Lowered(builder.Output("out"));
  ASSERT_THAT(network, IsOk());
  const Layer& layer = network->layers[1];
  ASSERT_TRUE(layer.op == Op::kEmbedding && layer.lookup().by_position);
  const DenseMatrix table = network->weights[layer.weight].ToDense();
  EXPECT_NEAR(table.values[4 * 3], std::sin(3.0), 1e-6);
  EXPECT_NEAR(table.values[4 * 3 + 3], std::cos(3 * kSlow), 1e-6);
}

// Two pairs of neighbours and two of halves are no order that the operator has.
TEST(RotaryTest, PairsOfBothKindsAreRefused) {
  OnnxBuilder builder = Heads();
  AddWaves(builder);
  for (const std::string x : {"q", "k"}) {  // channels 0 and 3, and 1 and 2, are pairs
    builder.Node("Slice", {x, "i0", "i1", "i3"}, {x + "_0"}).Node("Slice", {x, "i1", "i2", "i3"}, {x + "_1"});
    builder.Node("Slice", {x, "i2", "i3", "i3"}, {x + "_2"}).Node("Slice", {x, "i3", "i4", "i3"}, {x + "_3"});
    builder.Node("Neg", {x + "_2"}, {x + "_n2"}).Node("Neg", {x + "_3"}, {x + "_n3"});
    builder.Node("Concat", {x + "_n3", x + "_n2", x + "_1", x + "_0"}, {x + "_h"}, {{"axis", int64_t{-1}}});
    builder.Node("Slice", {"cos", "i0", "i1", "i1"}, {x + "_c0"}).Node("Slice", {"cos", "i1", "i2", "i1"}, {x + "_c1"});
    builder.Node("Slice", {"sin", "i0", "i1", "i1"}, {x + "_s0"}).Node("Slice", {"sin", "i1", "i2", "i1"}, {x + "_s1"});
    builder.Node("Concat", {x + "_c0", x + "_c1", x + "_c1", x + "_c0"}, {x + "_cs"}, {{"axis", int64_t{-1}}});
    builder.Node("Concat", {x + "_s0", x + "_s1", x + "_s1", x + "_s0"}, {x + "_ss"}, {{"axis", int64_t{-1}}});
    builder.Node("Mul", {x, x + "_cs"}, {x + "_x"}).Node("Mul", {x + "_h", x + "_ss"}, {x + "_y"});
    builder.Node("Add", {x + "_x", x + "_y"}, {x + "_turned"});
  }
  EXPECT_THAT(Lowered(AttendTurned(builder)), IsError(StatusCode::kUnimplemented, "heads are not turned alike"));
}

// What is one number a head of as many heads as channels is none a channel.
TEST(RotaryTest, FactorsOfHeadsAreNoScalesOfNorms) {
  OnnxBuilder builder(17);
  builder.Int64Input("ids", {-1, -1}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Int64s("heads", {4}, {0, 0, 2, 2}).Node("Reshape", {"x", "heads"}, {"h"}).Floats("two", {}, {2.0f});
  builder.Floats("epsilon", {}, {1e-6f}).Floats("scale", {2, 1}, {1, 2}).Int64s("all", {3}, {0, 0, 4});
  builder.Node("Pow", {"h", "two"}, {"squares"}).Node("ReduceMean", {"squares"}, {"mean"}, {{"axes", Ints{-1}}});
  builder.Node("Add", {"mean", "epsilon"}, {"shifted"}).Node("Sqrt", {"shifted"}, {"deviation"});
  builder.Node("Div", {"h", "deviation"}, {"normal"}).Node("Mul", {"scale", "normal"}, {"scaled"});
  builder.Node("Reshape", {"scaled", "all"}, {"out"});
  EXPECT_THAT(Lowered(builder.Output("out")), IsError(StatusCode::kUnimplemented, "for each channel of a head"));
}

// Whole numbers that are halved are other positions than real ones.
TEST(RotaryTest, HalvesOfWholePositionsAreRefused) {
  OnnxBuilder builder = Heads();
  builder.Int64s("half", {}, {2}).Node("Div", {"places", "half"}, {"halved"});
  builder.Node("Cast", {"halved"}, {"real"}, {{"to", int64_t{1}}}).Floats("frequencies", {1, 2}, {1.0f, kSlow});
  builder.Node("Unsqueeze", {"real", "i1"}, {"column"}).Node("MatMul", {"column", "frequencies"}, {"angles"});
  builder.Node("Cos", {"angles"}, {"cos"}).Node("Sin", {"angles"}, {"sin"});
  for (const char* wave : {"cos", "sin"}) {
    builder.Node("Concat", {wave, wave}, {Concat(wave, "_both")}, {{"axis", int64_t{-1}}});
  }
  for (const char* x : {"q", "k"}) TurnHalves(builder, x, "cos_both", "sin_both");
  EXPECT_THAT(Lowered(AttendTurned(builder)), IsError(StatusCode::kUnimplemented, "something else of positions"));
}

// RMSNorm of each head of queries, written out.
TEST(RotaryTest, HeadsAreNormalisedApart) {
  OnnxBuilder builder = Heads();
  builder.Floats("two", {}, {2.0f})
      .Int64s("last", {1}, {-1})
      .Floats("epsilon", {}, {1e-6f})
      .Floats("scale", {4}, {1, 2, 3, 4});
  builder.Node("Pow", {"q", "two"}, {"squares"}).Node("ReduceMean", {"squares"}, {"mean"}, {{"axes", Ints{-1}}});
  builder.Node("Add", {"mean", "epsilon"}, {"shifted"}).Node("Sqrt", {"shifted"}, {"deviation"});
  builder.Node("Div", {"q", "deviation"}, {"normal"}).Node("Mul", {"scale", "normal"}, {"q_turned"});
  const auto network = Lowered(AttendTurned(builder, "k"));
  ASSERT_THAT(network, IsOk());
  const auto norm = std::ranges::find(network->layers, Op::kLayerNorm, &Layer::op);
  ASSERT_NE(norm, network->layers.end());
  EXPECT_EQ(norm->normalisation(), (Normalisation{1e-6f, false, 2}));
  EXPECT_EQ(network->weights[norm->weight].ToDense().values, (std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace swizzle
