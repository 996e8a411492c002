// Attention to whose scores numbers are added that go by distance or by pairs of places: what of a graph becomes the
// biases of a plan's attention.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/operator/pair_biases.h"
#include "model_loader/passes/lower.h"
#include "model_loader/sequences/distances.h"
#include "tests/support/recognised.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::Lowered;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Two heads of two channels over ids [batch, length], -1: of any length, with the scores "s" [batch, 2, length,
// length], scaled by a half, that become the scores "t"; "i" and "j" are the places of queries and keys.
OnnxBuilder BiasedScores(int64_t length = -1, int64_t opset = 17) {
  OnnxBuilder builder(opset);
  builder.Int64Input("ids", {-1, length}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Int64s("heads", {4}, {0, 0, 2, 2}).Node("Reshape", {"x", "heads"}, {"split"});
  builder.Node("Transpose", {"split"}, {"h"}, {{"perm", Ints{0, 2, 1, 3}}});
  builder.Node("Transpose", {"split"}, {"k"}, {{"perm", Ints{0, 2, 3, 1}}}).Node("MatMul", {"h", "k"}, {"q"});
  builder.Floats("half", {}, {0.5f}).Node("Mul", {"q", "half"}, {"s"}).Floats("low", {}, {-1e9f});
  builder.Int64s("zero", {}, {0}).Int64s("one", {}, {1}).Int64s("first", {1}, {0}).Int64s("second", {1}, {1});
  builder.Node("Shape", {"ids"}, {"shape"}).Node("Gather", {"shape", "one"}, {"length"});
  builder.Node("Range", {"zero", "length", "one"}, {"places"});
  builder.Node("Unsqueeze", {"places", "second"}, {"i"}).Node("Unsqueeze", {"places", "first"}, {"j"});
  return builder;
}

OnnxBuilder AttendBiased(OnnxBuilder builder, const std::string& scores = "t") {
  builder.Node("Softmax", {scores}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "h"}, {"y"});
  builder.Node("Transpose", {"y"}, {"merged"}, {{"perm", Ints{0, 2, 1, 3}}}).Int64s("rows", {3}, {0, 0, 4});
  return builder.Node("Reshape", {"merged", "rows"}, {"out"}).Output("out");
}

// One attention, whose bias of each head and distance up to `farthest` is the function's.
void ExpectBiases(const OnnxBuilder& builder, int64_t reach, const std::function<float(int64_t, int64_t)>& expected,
                  float scale = 0.5f) {
  const auto network = Lowered(builder);
  ASSERT_THAT(network, IsOk());
  ASSERT_THAT(network->Validate(), IsOk());
  const Layer& layer = network->layers.back();
  ASSERT_EQ(layer.op, Op::kBiasedAttention);
  EXPECT_EQ(layer.attention().reach, reach);
  EXPECT_EQ(layer.attention().length, 0);
  EXPECT_EQ(layer.attention().scale, scale);
  const DenseMatrix& biases = *network->weights[layer.weight].matrix.As<DenseMatrix>();
  const PairPlaces places = PairPlacesOf(layer.attention());
  ASSERT_EQ(biases.cols, places.count());
  constexpr int64_t kFarthest = 40;
  for (int64_t head = 0; head < 2; ++head) {
    for (int64_t distance = -kFarthest; distance <= kFarthest; ++distance) {
      const float bias = biases.values[head * biases.cols + places.At(kFarthest, kFarthest + distance)];
      EXPECT_EQ(bias, expected(head, distance)) << "head " << head << ", distance " << distance;
    }
  }
}

// Biases of three buckets on either side, which farther distances share by their logarithm: 0, 1, 2 to 7, 8 and more.
float Relative(int64_t head, int64_t distance) {
  const int64_t away = std::abs(distance), bucket = away < 2 ? away : away < 8 ? 2 : 3;
  return static_cast<float>(10 * (bucket + (distance > 0 ? 4 : 0)) + head);
}
OnnxBuilder WithBuckets(OnnxBuilder builder, const std::string& distances) {
  std::vector<float> table;
  for (int64_t bucket = 0; bucket < 8; ++bucket) {
    for (int64_t head = 0; head < 2; ++head) table.push_back(static_cast<float>(10 * bucket + head));
  }
  builder.Floats("table", {8, 2}, table).Int64s("four", {}, {4}).Int64s("two", {}, {2}).Int64s("three", {}, {3});
  builder.Node("Greater", {distances, "zero"}, {"ahead"}).Node("Cast", {"ahead"}, {"a"}, {{"to", int64_t{7}}});
  builder.Node("Mul", {"a", "four"}, {"side"}).Node("Abs", {distances}, {"away"});
  builder.Node("Less", {"away", "two"}, {"near"}).Node("Cast", {"away"}, {"f"}, {{"to", int64_t{1}}});
  builder.Floats("two.f", {}, {2}).Floats("four.f", {}, {static_cast<float>(std::log(4.0))});
  builder.Node("Div", {"f", "two.f"}, {"ratio"})
      .Node("Log", {"ratio"}, {"log"})
      .Node("Div", {"log", "four.f"}, {"share"});
  builder.Node("Cast", {"share"}, {"far"}, {{"to", int64_t{7}}}).Node("Add", {"far", "two"}, {"more"});
  builder.Node("Min", {"more", "three"}, {"most"}).Node("Where", {"near", "away", "most"}, {"bucket"});
  builder.Node("Add", {"bucket", "side"}, {"row"}).Node("Gather", {"table", "row"}, {"by_pair"});
  builder.Node("Transpose", {"by_pair"}, {"by_head"}, {{"perm", Ints{2, 0, 1}}});
  return builder.Node("Unsqueeze", {"by_head", "first"}, {"bias"});
}

TEST(BiasesTest, RelativePositionsInBuckets) {
  OnnxBuilder forwards = WithBuckets(BiasedScores().Node("Sub", {"j", "i"}, {"d"}), "d");
  ExpectBiases(AttendBiased(forwards.Node("Add", {"s", "bias"}, {"t"})), 8, Relative);
  OnnxBuilder backwards = BiasedScores().Node("Sub", {"i", "j"}, {"n"}).Node("Neg", {"n"}, {"d"});
  ExpectBiases(AttendBiased(WithBuckets(backwards, "d").Node("Add", {"bias", "s"}, {"t"})), 8, Relative);
  OnnxBuilder scaled =
      WithBuckets(BiasedScores().Node("Sub", {"j", "i"}, {"d"}), "d").Node("Add", {"s", "bias"}, {"u"});
  ExpectBiases(
      AttendBiased(scaled.Node("Mul", {"u", "half"}, {"t"})), 8,
      [](int64_t head, int64_t distance) { return Relative(head, distance) / 2; }, 0.25f);
}

// T5 adds the mask to the biases before it adds both to scores.
TEST(BiasesTest, AMaskOfKeysThatIsAddedToBiases) {
  OnnxBuilder builder = WithBuckets(BiasedScores().Node("Sub", {"j", "i"}, {"d"}), "d");
  builder.Int64Input("mask", {-1, -1}).Int64s("axes", {2}, {1, 2}).Floats("unit", {}, {1});
  builder.Node("Unsqueeze", {"mask", "axes"}, {"wide"}).Node("Cast", {"wide"}, {"m"}, {{"to", int64_t{1}}});
  builder.Node("Sub", {"unit", "m"}, {"out_of"}).Node("Mul", {"out_of", "low"}, {"added"});
  builder.Node("Add", {"bias", "added"}, {"both"}).Node("Add", {"s", "both"}, {"t"});
  const OnnxBuilder whole = AttendBiased(builder);
  ExpectBiases(whole, 8, Relative);
  const auto network = Lowered(whole);
  ASSERT_THAT(network, IsOk());
  EXPECT_EQ(network->inputs[static_cast<size_t>(network->sequences->mask)].name, "mask");
  EXPECT_LE(network->sequences->masked_bias, -9e8f);
  EXPECT_TRUE(network->sequences->skips_masked);
}

float Causal(int64_t, int64_t distance) { return distance <= 0 ? 0.0f : kNothing; }

TEST(BiasesTest, CausalMasksOfAnyLength) {
  OnnxBuilder compared = BiasedScores().Node("LessOrEqual", {"j", "i"}, {"past"});
  ExpectBiases(AttendBiased(compared.Node("Where", {"past", "s", "low"}, {"t"})), 1, Causal);
  OnnxBuilder excluded = BiasedScores().Node("Greater", {"j", "i"}, {"future"});
  ExpectBiases(AttendBiased(excluded.Node("Where", {"future", "low", "s"}, {"t"})), 1, Causal);
  OnnxBuilder triangle = BiasedScores().Node("Unsqueeze", {"length", "first"}, {"side"});
  triangle.Node("Concat", {"side", "side"}, {"square"}, {{"axis", int64_t{0}}}).Floats("unit", {}, {1});
  triangle.Node("Expand", {"unit", "square"}, {"ones"}).Node("Trilu", {"ones"}, {"lower"}, {{"upper", int64_t{0}}});
  triangle.Node("Cast", {"lower"}, {"b"}, {{"to", int64_t{9}}}).Node("Where", {"b", "s", "low"}, {"t"});
  ExpectBiases(AttendBiased(triangle), 1, Causal);
  // GPT-2's: of a table, as many rows and columns as there are tokens.
  OnnxBuilder table = BiasedScores();
  std::vector<float> ones(64 * 64, 0.0f);
  for (size_t query = 0; query < 64; ++query) {
    for (size_t key = 0; key <= query; ++key) ones[query * 64 + key] = 1.0f;
  }
  table.Floats("table", {1, 1, 64, 64}, ones).Int64s("rows.axis", {1}, {2}).Int64s("columns.axis", {1}, {3});
  table.Node("Unsqueeze", {"length", "first"}, {"end"}).Node("Slice", {"table", "first", "end", "rows.axis"}, {"part"});
  table.Node("Slice", {"part", "first", "end", "columns.axis"}, {"whole"});
  table.Node("Cast", {"whole"}, {"b"}, {{"to", int64_t{9}}}).Node("Where", {"b", "s", "low"}, {"t"});
  ExpectBiases(AttendBiased(table), 1, Causal);
}

// Local attention: |i - j| < 3.
TEST(BiasesTest, WindowsOfAnyLength) {
  OnnxBuilder builder = BiasedScores().Int64s("width", {}, {3}).Floats("none", {}, {0}).Node("Sub", {"i", "j"}, {"d"});
  builder.Node("Abs", {"d"}, {"a"})
      .Node("Less", {"a", "width"}, {"near"})
      .Node("Where", {"near", "none", "low"}, {"m"});
  ExpectBiases(AttendBiased(builder.Node("Add", {"s", "m"}, {"t"})), 3,
               [](int64_t, int64_t distance) { return std::abs(distance) < 3 ? 0.0f : kNothing; });
}

// ALiBi's slopes, of a number for each head: nothing is the same from some distance on, so that sequences have an end.
TEST(BiasesTest, WhatGoesOnChangingBoundsSequences) {
  OnnxBuilder builder = BiasedScores().Node("Sub", {"j", "i"}, {"d"}).Node("Cast", {"d"}, {"f"}, {{"to", int64_t{1}}});
  builder.Floats("slopes", {2, 1, 1}, {0.5f, 0.25f}).Node("Mul", {"f", "slopes"}, {"bias"});
  builder = AttendBiased(builder.Node("Add", {"s", "bias"}, {"t"}));
  ExpectBiases(builder, kNearDistance, [](int64_t head, int64_t distance) {
    return static_cast<float>(distance) * (head == 0 ? 0.5f : 0.25f);
  });
  EXPECT_EQ(Lowered(builder)->LookupLimit(-1), kNearDistance + 1);
}

TEST(BiasesTest, FactorsThatAreNotPositiveAreRefused) {
  for (const float factor : {-1.0f, 0.0f}) {
    OnnxBuilder scaled = BiasedScores();
    scaled.Floats("factors", {2, 1, 1}, {0.5f, factor}).Node("Mul", {"s", "factors"}, {"t"});
    EXPECT_THAT(Lowered(AttendBiased(scaled)).status(),
                IsError(StatusCode::kUnimplemented, "other than positive numbers, one a head"));
  }
}

TEST(BiasesTest, FactorsOfScoresAreRefused) {
  OnnxBuilder period = WithBuckets(BiasedScores().Node("Sub", {"j", "i"}, {"d"}), "d");
  period.Node("Mul", {"bias", "s"}, {"t"});
  EXPECT_THAT(Lowered(AttendBiased(period)).status(),
              IsError(StatusCode::kUnimplemented, "it changes scores by what is no"));
}

TEST(BiasesTest, ConstantsOfEveryPair) {
  constexpr int64_t kLength = 3;
  std::vector<float> table;
  for (int i = 0; i < 2 * kLength * kLength; ++i) table.push_back(static_cast<float>(i % 7));
  OnnxBuilder builder = BiasedScores(kLength).Floats("m", {1, 2, kLength, kLength}, table);
  const auto network = Lowered(AttendBiased(builder.Node("Add", {"m", "s"}, {"t"})));
  ASSERT_THAT(network, IsOk());
  ASSERT_THAT(network->Validate(), IsOk());
  const Layer& layer = network->layers.back();
  ASSERT_EQ(layer.op, Op::kBiasedAttention);
  EXPECT_EQ(layer.attention().length, kLength);
  EXPECT_EQ(network->weights[layer.weight].matrix.As<DenseMatrix>()->values, table);
  OnnxBuilder of_all = BiasedScores(kLength).Floats("m", {kLength, kLength}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const auto shared = Lowered(AttendBiased(of_all.Node("Sub", {"s", "m"}, {"t"})));
  ASSERT_THAT(shared, IsOk());
  EXPECT_EQ(shared->weights[shared->layers.back().weight].matrix.As<DenseMatrix>()->values,
            (std::vector<float>{0, -1, -2, -3, -4, -5, -6, -7, -8, 0, -1, -2, -3, -4, -5, -6, -7, -8}));
  table.resize(27, 1.0f);
  OnnxBuilder of_two = BiasedScores(2).Floats("m", {2, 2}, {0, 1, 0, 1});
  const auto two = Lowered(AttendBiased(of_two.Node("Add", {"s", "m"}, {"t"})));
  ASSERT_THAT(two, IsOk());
  EXPECT_EQ(two->weights[two->layers.back().weight].matrix.As<DenseMatrix>()->values,
            (std::vector<float>{0, 1, 0, 1, 0, 1, 0, 1}));
  OnnxBuilder by_distance = BiasedScores(kLength).Floats("m", {kLength, kLength}, {0, 1, 2, -1, 0, 1, -2, -1, 0});
  ExpectBiases(AttendBiased(by_distance.Node("Add", {"s", "m"}, {"t"})), 2,
               [](int64_t, int64_t distance) { return static_cast<float>(std::clamp<int64_t>(distance, -2, 2)); });
  OnnxBuilder other = BiasedScores(kLength).Floats("m", {3, kLength, kLength}, table);
  EXPECT_FALSE(Lowered(AttendBiased(other.Node("Add", {"s", "m"}, {"t"}))).ok()) << "of three heads";
}

// A bias that masked keys have at some distances only is no mask, nor is a transposed triangle one of keys.
TEST(BiasesTest, WhatLooksLikeAMaskIsRefused) {
  OnnxBuilder builder = BiasedScores().Node("Greater", {"j", "i"}, {"ahead"});
  builder.Node("Cast", {"ahead"}, {"a"}, {{"to", int64_t{1}}}).Int64Input("mask", {-1, -1}).Int64s("axes", {2}, {1, 2});
  builder.Node("Unsqueeze", {"mask", "axes"}, {"wide"}).Node("Cast", {"wide"}, {"m"}, {{"to", int64_t{1}}});
  builder.Floats("unit", {}, {1}).Node("Sub", {"unit", "m"}, {"out_of"}).Node("Mul", {"out_of", "low"}, {"added"});
  builder.Node("Mul", {"a", "added"}, {"both"}).Node("Add", {"s", "both"}, {"t"});
  EXPECT_THAT(Lowered(AttendBiased(builder)).status(), IsError(StatusCode::kUnimplemented, "goes by their distance"));
  OnnxBuilder turned = BiasedScores().Node("Sub", {"j", "i"}, {"d"}).Node("Transpose", {"d"}, {"back"});
  turned.Node("Trilu", {"back"}, {"lower"}, {{"upper", int64_t{0}}});
  turned.Node("Cast", {"lower"}, {"f"}, {{"to", int64_t{1}}}).Node("Add", {"s", "f"}, {"t"});
  EXPECT_THAT(Lowered(AttendBiased(turned)).status(),
              IsError(StatusCode::kUnimplemented, "no mask of pairs of tokens"));
  OnnxBuilder heads = BiasedScores().Floats("table", {1, 3}, {1, 2, 3}).Node("Sub", {"j", "i"}, {"d"});
  heads.Node("Mul", {"d", "zero"}, {"row"}).Node("Gather", {"table", "row"}, {"by_pair"});
  heads.Node("Transpose", {"by_pair"}, {"bias"}, {{"perm", Ints{2, 0, 1}}}).Node("Add", {"s", "bias"}, {"t"});
  EXPECT_FALSE(Lowered(AttendBiased(heads)).ok()) << "of three heads";
}

// What is the same for all keys changes nothing.
TEST(BiasesTest, BiasesThatAreAllAlikeAreNone) {
  OnnxBuilder builder =
      BiasedScores().Node("Sub", {"j", "i"}, {"d"}).Int64s("none", {}, {0}).Node("Mul", {"d", "none"}, {"n"});
  builder.Node("Cast", {"n"}, {"f"}, {{"to", int64_t{1}}});
  const auto network = Lowered(AttendBiased(builder.Node("Add", {"s", "f"}, {"t"})));
  ASSERT_THAT(network, IsOk());
  EXPECT_EQ(network->layers.back().op, Op::kAttention);
}

}  // namespace
}  // namespace swizzle
