// Masks of pairs of tokens: as numbers, and in graphs that spell them in different ways.
#include "model_loader/sequences/pairs.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "model_loader/graph/verify.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/passes.h"
#include "model_loader/sequences/recognise.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> RowOf(const PairFunction& pairs, int64_t query, int64_t length) {
  std::vector<double> row(static_cast<size_t>(length));
  pairs.row(query, row);
  return row;
}

TEST(PairsTest, ConstantsOfTwoNumbersAreRead) {
  const std::vector<float> mask = {0, -7, 0, 0};
  const SharedPairs pairs = PairsOfTensor(Tensor::Floats({2, 2}, mask), 2);
  ASSERT_NE(pairs, nullptr);
  EXPECT_EQ(RowOf(*pairs, 0, 2), (std::vector<double>{0, -7}));
  EXPECT_EQ(RowOf(*pairs, 1, 2), (std::vector<double>{0, 0}));
  EXPECT_EQ(PairsOfTensor(Tensor::Floats({2, 2}, std::vector<float>{0, -7, 1, 0}), 2), nullptr);
  const std::vector<float> alike = {0, -7, 0, 0, 0, -7, 0, 0}, unlike = {0, -7, 0, 0, 0, -7, -7, 0};
  EXPECT_NE(PairsOfTensor(Tensor::Floats({1, 2, 2, 2}, alike), 2), nullptr);
  EXPECT_EQ(PairsOfTensor(Tensor::Floats({1, 2, 2, 2}, unlike), 2), nullptr);
}

TEST(PairsTest, TrianglesAndFunctions) {
  const SharedPairs ones = PairsOfNumber(1.0);
  EXPECT_EQ(RowOf(*PairsOfTriangle(ones, 0, false), 1, 3), (std::vector<double>{1, 1, 0}));
  EXPECT_EQ(RowOf(*PairsOfTriangle(ones, 1, true), 1, 4), (std::vector<double>{0, 0, 1, 1}));
  const PointFunction difference = [](std::span<const double> x) { return x[0] - x[1]; };
  const SharedPairs pairs = PairsApplied(difference, DType::kInt64, {PairsOfQueries({0, 1}), PairsOfKeys({5, 7})});
  EXPECT_EQ(RowOf(*pairs, 1, 2), (std::vector<double>{-4, -6}));
}

TEST(PairsTest, PatternsOfMasks) {
  const SharedPairs causal = PairsOfTriangle(PairsOfNumber(1.0), 0, false);
  const auto pattern = PatternOf(*causal, 3, MaskUse::kKeepsTrue);
  ASSERT_THAT(pattern, IsOk());
  EXPECT_EQ(pattern->pattern.col_indices, (std::vector<uint32_t>{0, 0, 1, 0, 1, 2}));
  EXPECT_THAT(PatternOf(*causal, 3, MaskUse::kKeepsFalse),
              IsError(StatusCode::kInvalidArgument, "lets the token at place 2 attend to none"));
  EXPECT_THAT(PatternOf(*causal, 3, MaskUse::kAdded), IsError(StatusCode::kInvalidArgument, "adds 0 to some scores"));
  const AttentionPattern band = AttentionPattern::FromBand(3, 2, false);
  EXPECT_EQ(Intersection(pattern->pattern, band).col_indices, (std::vector<uint32_t>{0, 0, 1, 1, 2}));
}

// One head over sequences of `length`, whose scores "s" are to be masked and become the scores "t".
OnnxBuilder Scores(int64_t length, int64_t opset = 17) {
  OnnxBuilder builder(opset);
  builder.Int64Input("ids", {-1, length}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Node("Transpose", {"x"}, {"k"}, {{"perm", Ints{0, 2, 1}}}).Node("MatMul", {"x", "k"}, {"q"});
  return builder.Floats("half", {}, {0.5f}).Node("Mul", {"q", "half"}, {"s"}).Floats("low", {}, {-1e9f});
}

OnnxBuilder AttendPairs(OnnxBuilder builder, const std::string& scores = "t") {
  builder.Node("Softmax", {scores}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "x"}, {"y"});
  return builder.Output("y");
}

StatusOr<Network> LoweredPairs(const OnnxBuilder& builder) {
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, builder.Read());
  SWIZZLE_RETURN_IF_ERROR(ResolveConstants(graph).status());
  SWIZZLE_RETURN_IF_ERROR(RemoveNoOps(graph).status());
  SWIZZLE_RETURN_IF_ERROR(RecogniseSequences(graph).status());
  EXPECT_THAT(Verify(graph), IsOk());
  return Lower(std::move(graph));
}

void ExpectPattern(const OnnxBuilder& builder, const AttentionPattern& expected, float scale = 0.5f) {
  const auto network = LoweredPairs(builder);
  ASSERT_THAT(network, IsOk());
  const Layer& layer = network->layers.back();
  ASSERT_EQ(layer.op, Op::kSparseAttention);
  EXPECT_EQ(layer.attention().scale, scale);
  EXPECT_EQ(layer.attention().length, expected.tokens);
  const auto& pattern = *network->weights[layer.weight].matrix.As<AttentionPattern>();
  EXPECT_EQ(pattern.row_offsets, expected.row_offsets);
  EXPECT_EQ(pattern.col_indices, expected.col_indices);
}

// The pattern as a matrix of these two numbers.
std::vector<float> MatrixOf(const AttentionPattern& pattern, float kept, float left_out) {
  std::vector<float> matrix(static_cast<size_t>(pattern.tokens * pattern.tokens), left_out);
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    for (uint32_t key : pattern.Keys(query)) matrix[static_cast<size_t>(query * pattern.tokens + key)] = kept;
  }
  return matrix;
}

TEST(RecognisePairsTest, ConstantsThatAreAdded) {
  for (const int64_t length : {5, 300}) {
    const AttentionPattern band = AttentionPattern::FromBandAndRandom(length, 2, 0.2, 1);
    for (const float low : {-kInfinity, -1e9f, std::numeric_limits<float>::lowest(), -1e4f}) {
      OnnxBuilder added = Scores(length).Floats("m", {1, length, length}, MatrixOf(band, 0, low));
      ExpectPattern(AttendPairs(added.Node("Add", {"m", "s"}, {"t"})), band);
    }
    OnnxBuilder subtracted = Scores(length).Floats("m", {length, length}, MatrixOf(band, 0, 1e9f));
    ExpectPattern(AttendPairs(subtracted.Node("Sub", {"s", "m"}, {"t"})), band);
    OnnxBuilder scaled = Scores(length).Floats("m", {length, length}, MatrixOf(band, 0, -1e9f));
    scaled.Node("Add", {"s", "m"}, {"u"}).Node("Mul", {"u", "half"}, {"t"});
    ExpectPattern(AttendPairs(scaled), band, 0.25f);
  }
}

TEST(RecognisePairsTest, ConditionsOfWhere) {
  const AttentionPattern band = AttentionPattern::FromBand(6, 2, false);
  const std::vector<float> ones = MatrixOf(band, 1, 0);
  OnnxBuilder kept = Scores(6).Int64s("c", {6, 6}, {ones.begin(), ones.end()});
  kept.Node("Cast", {"c"}, {"b"}, {{"to", int64_t{9}}}).Node("Where", {"b", "s", "low"}, {"t"});
  ExpectPattern(AttendPairs(kept), band);
  OnnxBuilder left_out = Scores(6).Int64s("c", {6, 6}, {ones.begin(), ones.end()});
  left_out.Node("Cast", {"c"}, {"b"}, {{"to", int64_t{9}}}).Node("Not", {"b"}, {"n"});
  ExpectPattern(AttendPairs(left_out.Node("Where", {"n", "low", "s"}, {"t"})), band);
}

// |i - j| < 3 of positions, small enough to list and too large.
TEST(RecognisePairsTest, WindowsOfPositions) {
  for (const int64_t length : {7, 300}) {
    OnnxBuilder builder = Scores(length);
    builder.Int64s("zero", {}, {0}).Int64s("one", {}, {1}).Int64s("end", {}, {length}).Int64s("axis", {1}, {1});
    builder.Int64s("width", {}, {3}).Floats("none", {}, {0}).Node("Range", {"zero", "end", "one"}, {"j"});
    builder.Node("Unsqueeze", {"j", "axis"}, {"i"}).Node("Sub", {"i", "j"}, {"d"}).Node("Abs", {"d"}, {"a"});
    builder.Node("Less", {"a", "width"}, {"near"}).Node("Where", {"near", "none", "low"}, {"m"});
    ExpectPattern(AttendPairs(builder.Node("Add", {"s", "m"}, {"t"})), AttentionPattern::FromBand(length, 3, false));
  }
}

// A causal triangle, and a band as a second mask.
TEST(RecognisePairsTest, TrianglesAndSeveralMasks) {
  constexpr int64_t kLength = 9;
  OnnxBuilder builder = Scores(kLength);
  builder.Int64s("shape", {2}, {kLength, kLength}).Node("ConstantOfShape", {"shape"}, {"zeros"});
  builder.Floats("unit", {}, {1}).Node("Add", {"zeros", "unit"}, {"ones"});
  builder.Node("Trilu", {"ones"}, {"lower"}, {{"upper", int64_t{0}}});
  builder.Node("Cast", {"lower"}, {"b"}, {{"to", int64_t{9}}}).Node("Where", {"b", "s", "low"}, {"t"});
  ExpectPattern(AttendPairs(builder), AttentionPattern::FromBand(kLength, kLength, true));
  builder.Floats("m", {kLength, kLength}, MatrixOf(AttentionPattern::FromBand(kLength, 2, false), 0, -kInfinity));
  builder.Node("Add", {"t", "m"}, {"both"}).Node("Softmax", {"both"}, {"p2"}, {{"axis", int64_t{2}}});
  builder.Node("MatMul", {"p2", "x"}, {"z"}).Output("z");
  ExpectPattern(builder, AttentionPattern::FromBand(kLength, 2, true));
}

TEST(RecognisePairsTest, CausalByName) {
  OnnxBuilder builder(23);
  builder.Int64Input("ids", {-1, 5}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Node("Attention", {"x", "x", "x"}, {"y"},
               {{"is_causal", int64_t{1}}, {"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
  ExpectPattern(builder.Output("y"), AttentionPattern::FromBand(5, 5, true), 1 / std::sqrt(2.0f));
}

TEST(RecognisePairsTest, AMaskThatLeavesNothingOutIsNone) {
  OnnxBuilder builder = Scores(3).Floats("m", {3, 3}, {0, 0, 0, 0, 0, 0, 0, -0.0f, 0});
  const auto network = LoweredPairs(AttendPairs(builder.Node("Add", {"s", "m"}, {"t"})));
  ASSERT_THAT(network, IsOk());
  EXPECT_EQ(network->layers.back().op, Op::kAttention);
}

// Scores of two tokens that a mask of tokens leaves out, to which these numbers are added as well.
OnnxBuilder WithMaskOfTokens(const std::vector<float>& added) {
  OnnxBuilder tokens = Scores(2).Floats("m", {2, 2}, added);
  tokens.Int64Input("mask", {-1, 2}).Int64s("one", {1}, {1});
  tokens.Node("Unsqueeze", {"mask", "one"}, {"u"}).Node("Cast", {"u"}, {"b"}, {{"to", int64_t{9}}});
  return tokens.Node("Where", {"b", "s", "low"}, {"v"}).Node("Add", {"v", "m"}, {"t"});
}

TEST(RecognisePairsTest, RefusesWhatIsNoPattern) {
  const auto refusal = [](const OnnxBuilder& builder) { return LoweredPairs(builder).status(); };
  const auto unimplemented = [](const std::string& text) { return IsError(StatusCode::kUnimplemented, text); };
  OnnxBuilder kept = Scores(2).Int64s("c", {2, 2}, {1, 1, 0, 0}).Node("Cast", {"c"}, {"b"}, {{"to", int64_t{9}}});
  EXPECT_THAT(refusal(AttendPairs(kept.Node("Where", {"b", "s", "low"}, {"t"}))),
              unimplemented("lets the token at place 1 attend to none"));
  OnnxBuilder free = Scores(-1).Floats("m", {2, 2}, {0, -1e9f, 0, 0});
  EXPECT_THAT(refusal(AttendPairs(free.Node("Add", {"s", "m"}, {"t"}))), unimplemented("sequences of a fixed length"));
  EXPECT_THAT(refusal(AttendPairs(WithMaskOfTokens({0, 0, -1e9f, 0}))),
              unimplemented("a mask of pairs of tokens as well as one of tokens"));
}

TEST(RecognisePairsTest, WhatIsCausalGoesWithAMaskOfTokens) {
  const auto network = LoweredPairs(AttendPairs(WithMaskOfTokens({0, -1e9f, 0, 0})));
  ASSERT_THAT(network, IsOk());
  EXPECT_EQ(network->layers.back().op, Op::kBiasedAttention);
  EXPECT_EQ(network->layers.back().attention().length, 0) << "by distance";
  EXPECT_NE(network->sequences->mask, -1);
}

// As deep as a hostile graph may be, and as wide: every step doubles what it takes.
TEST(RecognisePairsTest, BoundsWhatMasksTakeToCompute) {
  for (const bool doubles : {false, true}) {
    OnnxBuilder builder = Scores(3);
    builder.Int64s("shape", {2}, {3, 3}).Node("ConstantOfShape", {"shape"}, {"zeros"}).Floats("unit", {}, {1});
    builder.Node("Add", {"zeros", "unit"}, {"ones"}).Node("Trilu", {"ones"}, {"m0"}, {{"upper", int64_t{0}}});
    for (int i = 0; i < 300; ++i) {
      builder.Node("Add", {Concat("m", i), doubles ? Concat("m", i) : "unit"}, {Concat("m", i + 1)});
    }
    EXPECT_THAT(LoweredPairs(AttendPairs(builder.Node("Add", {"s", "m300"}, {"t"}))).status(),
                IsError(StatusCode::kUnimplemented, "its mask takes too many steps to compute"));
  }
}

}  // namespace
}  // namespace swizzle
