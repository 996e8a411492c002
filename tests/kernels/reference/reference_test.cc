// The truth is checked by hand: small problems whose answers are written out.
#include "kernels/reference/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/reference/layout.h"

namespace swizzle::reference {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::Pointwise;

Weight DenseWeight(int64_t rows, int64_t cols, Values values, Values bias = {}) {
  return {DenseMatrix{rows, cols, std::move(values)}, std::move(bias)};
}

// 1 2 3
// 4 5 6
// 7 8 9
const Values kNine = {1, 2, 3, 4, 5, 6, 7, 8, 9};

Problem OnNine(Op op, const Window& window, int64_t output_size) {
  return {{op, window}, {1, 1, 3, 3}, {1, 1, output_size, output_size}};
}

TEST(Reference, PointwiseConvMixesChannels) {
  const Problem problem{{Op::kConv, Window(), {0, 40, true}}, {1, 2, 1, 2}, {1, 2, 1, 2}};
  const Weight weight = DenseWeight(2, 2, {1, 10, -1, 0}, {0.5f, 0});
  // Channels {1, 2} and {3, 4}; residual 1 everywhere.
  EXPECT_THAT(Conv(problem, weight, {1, 2, 3, 4}, {1, 1, 1, 1}), ElementsAre(32.5, 40, 0, 0));
}

TEST(Reference, ConvWindowHasPaddingStrideAndDilation) {
  const Weight corners = DenseWeight(1, 4, {1, 10, 100, 1000});
  const Window dilated{2, 2, 1, 1, 0, 0, 0, 0, 2, 2, false};
  EXPECT_THAT(Conv(OnNine(Op::kConv, dilated, 1), corners, kNine, {}), ElementsAre(1 + 30 + 700 + 9000));
  const Window padded{2, 2, 2, 2, 1, 1, 0, 0, 1, 1, false};
  EXPECT_THAT(Conv(OnNine(Op::kConv, padded, 2), corners, kNine, {}),
              ElementsAre(1000, 200 + 3000, 40 + 7000, 5 + 60 + 800 + 9000));
}

TEST(Reference, DepthwiseKeepsChannelsApart) {
  const Problem problem{{Op::kDepthwiseConv, Window{1, 2}}, {1, 2, 1, 2}, {1, 2, 1, 1}};
  const Weight weight = DenseWeight(2, 2, {1, 10, 100, 1000}, {0, 0.5f});
  EXPECT_THAT(DepthwiseConv(problem, weight, {1, 2, 3, 4}, {}), ElementsAre(21, 4300.5));
}

TEST(Reference, PoolsLeaveOutThePadding) {
  Window window{2, 2, 2, 2, 1, 1, 0, 0, 1, 1, false};
  EXPECT_THAT(MaxPool(OnNine(Op::kMaxPool, window, 2), kNine), ElementsAre(1, 3, 7, 9));
  EXPECT_THAT(AveragePool(OnNine(Op::kAveragePool, window, 2), kNine), ElementsAre(1, 2.5, 5.5, 7));
  window.count_include_pad = true;
  EXPECT_THAT(AveragePool(OnNine(Op::kAveragePool, window, 2), kNine), ElementsAre(0.25, 1.25, 2.75, 7));
}

TEST(Reference, SoftmaxIsOverChannelsAndSurvivesLargeValues) {
  const Problem problem{{Op::kSoftmax, {}}, {1, 2, 1, 2}, {1, 2, 1, 2}};
  const Result expected = {0.5, 1, 0.5, 0};
  EXPECT_THAT(Softmax(problem, {1000, 500, 1000, -500}), Pointwise(DoubleNear(1e-12), expected));
}

TEST(Reference, ElementwiseOpsClamp) {
  const Problem problem{{Op::kAdd, {}, {0, 6, false}}, {1, 3, 1, 1}, {1, 3, 1, 1}};
  EXPECT_THAT(Add(problem, {-5, 1, 5}, {1, 1, 5}), ElementsAre(0, 2, 6));
  EXPECT_THAT(Activation(problem, {-5, 1, 7}), ElementsAre(0, 1, 6));
}

TEST(Reference, ProductsAreByElementOrByChannelAndImage) {
  const Extent extent{2, 2, 1, 2};
  const Problem multiply{{Op::kMultiply, {}, {-10, 10, false}}, {1, 3}, {1, 3}};
  EXPECT_THAT(Multiply(multiply, {1, -2, 3}, {4, 5, -6}), ElementsAre(4, -10, -10));
  const Problem scale{{Op::kScale, {}}, extent, extent};
  EXPECT_THAT(Scale(scale, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 10, 100, 1000}),
              ElementsAre(1, 2, 30, 40, 500, 600, 7000, 8000));
}

TEST(Reference, FunctionsAreThoseOfOnnx) {
  EXPECT_NEAR(ApplyFunction({FunctionKind::kSigmoid, 0, 0}, 2), 0.8807970779778823, 1e-15);
  EXPECT_NEAR(ApplyFunction({FunctionKind::kSilu, 0, 0}, 2), 2 * 0.8807970779778823, 1e-15);
  EXPECT_EQ(ApplyFunction({FunctionKind::kHardSigmoid, 0.25f, 0.5f}, 1), 0.75);
  EXPECT_EQ(ApplyFunction({FunctionKind::kHardSigmoid, 0.25f, 0.5f}, 3), 1);
  EXPECT_EQ(ApplyFunction({FunctionKind::kHardSwish, 0.25f, 0.5f}, 1), 0.75);
  EXPECT_EQ(ApplyFunction({FunctionKind::kHardSwish, 0.25f, 0.5f}, -3), 0);
  EXPECT_EQ(ApplyFunction({FunctionKind::kLeakyRelu, 0.25f, 0}, -4), -1);
  EXPECT_EQ(ApplyFunction({FunctionKind::kLeakyRelu, 0.25f, 0}, 4), 4);
}

TEST(Reference, TransposesEachImage) {
  const Problem problem{{Op::kTranspose, {}}, {2, 2, 1, 3}, {2, 3, 1, 2}};
  EXPECT_THAT(Transpose(problem, {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60}),
              ElementsAre(1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60));
}

// Sequences of one and two tokens, the second's at positions 0 and 2.
constexpr int32_t kBegins[] = {0, 1, 3};
constexpr int32_t kPositions[] = {0, 0, 2};
const Sequences kSequences{kBegins, kPositions, {}};

Problem OnTokens(Op op, int64_t input_channels, int64_t rows, int64_t channels) {
  Problem problem;
  problem.SetOp(op);
  problem.input = {3, input_channels};
  problem.output = {rows, channels};
  return problem;
}

TEST(Reference, EmbeddingTakesRowsByIdOrByPosition) {
  const Weight table = DenseWeight(4, 2, {0, 1, 10, 11, 20, 21, 30, 31});
  Problem problem = OnTokens(Op::kEmbedding, 1, 3, 2);
  const Values ids = {std::bit_cast<float>(int32_t{3}), 0.0f, std::bit_cast<float>(int32_t{1})};
  EXPECT_THAT(Embedding(problem, table, ids, kSequences), ElementsAre(30, 31, 0, 1, 10, 11));
  problem.lookup() = {true, 1};
  EXPECT_THAT(Embedding(problem, table, {}, kSequences), ElementsAre(10, 11, 10, 11, 30, 31));
}

TEST(Reference, LayerNormIsPerToken) {
  Problem problem = OnTokens(Op::kLayerNorm, 2, 3, 2);
  problem.normalisation() = {1};
  const double two_away = 2 / std::sqrt(5.0);
  EXPECT_THAT(
      LayerNorm(problem, DenseWeight(2, 1, {1, 10}, {0, 100}), {5, 5, 3, 7, 4, 0}),
      Pointwise(DoubleNear(1e-12), Result{0, 100, -two_away, 100 + 10 * two_away, two_away, 100 - 10 * two_away}));
}

TEST(Reference, AttentionStaysInsideSequencesAndHeads) {
  Problem problem = OnTokens(Op::kAttention, 2, 3, 2);
  problem.attention() = {2, 0.5f};
  // In head 0 the second sequence's keys score 0 and 0.5 * 2 * log(3); in head 1 all score 0.
  const float log_3 = std::log(3.0f);
  const AttentionInputs inputs{{7, 7, 2, 0, 0, 0}, {9, 9, 0, 5, log_3, 5}, {1, 2, 4, 6, 8, 10}};
  EXPECT_THAT(Attention(problem, inputs, kSequences), Pointwise(DoubleNear(1e-6), Result{1, 2, 7, 8, 6, 8}));
}

// Heads 0 and 1 of four read the first of keys and values, 2 and 3 the second; apart or side by side.
TEST(Reference, HeadsOfAttentionShareKeysAndValues) {
  Problem problem = OnTokens(Op::kAttention, 4, 3, 4);
  problem.attention() = {4, 0.5f};
  const Values queries = {1, -2, 3, 4, 0, 1, 2, -1, 5, 1, 0, 3};
  const Values keys = {2, 1, 0, 3, -1, 2}, values = {7, 1, 3, 2, 9, 4};
  const auto repeated = [](const Values& shared) {
    Values all;
    for (const float value : shared) all.insert(all.end(), 2, value);
    return all;
  };
  const Result expected = Attention(problem, {queries, repeated(keys), repeated(values)}, kSequences);
  problem.attention().group_size = 2;
  EXPECT_EQ(Attention(problem, {queries, keys, values}, kSequences), expected);
  Values packed;
  for (int64_t token = 0; token < 3; ++token) {
    for (const auto& [matrix, channels] : {std::pair(&queries, 4), {&keys, 2}, {&values, 2}}) {
      packed.insert(packed.end(), matrix->begin() + token * channels, matrix->begin() + (token + 1) * channels);
    }
  }
  problem.input.channels = 8;
  problem.attention().packed = true;
  EXPECT_EQ(Attention(problem, {packed, {}, {}}, kSequences), expected);
}

TEST(Reference, AttentionLeavesMaskedKeysOut) {
  Problem problem = OnTokens(Op::kAttention, 1, 3, 1);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const float bias[] = {kNever, 0, kNever};
  EXPECT_THAT(Attention(problem, {{1, 1, 1}, {1, 1, 1}, {5, 6, 7}}, {kBegins, kPositions, bias}), ElementsAre(0, 6, 6));
}

TEST(Reference, TokensAreSelectedFromEitherEnd) {
  Problem problem = OnTokens(Op::kSelectToken, 1, 2, 1);
  const Values input = {1, 2, 3};
  EXPECT_THAT(SelectToken(problem, input, kSequences), ElementsAre(1, 2));
  problem.token_choice() = {-1};
  EXPECT_THAT(SelectToken(problem, input, kSequences), ElementsAre(1, 3));
  problem.token_choice() = {1};  // the first sequence has none
  EXPECT_THAT(SelectToken(problem, input, kSequences), ElementsAre(1, 3));
}

TEST(Reference, MeanTokensDividesByEachLength) {
  const Problem problem = OnTokens(Op::kMeanTokens, 2, 2, 2);
  EXPECT_THAT(MeanTokens(problem, {1, 2, 3, 4, 5, 8}, kSequences), ElementsAre(1, 2, 4, 6));
}

// The worked example of kernels/layout.h: 196 positions are panels of 48, 48, 48 and 52 in units of 16.
TEST(ReferenceLayout, PanelsOffsetsAreThoseOfTheWorkedExample) {
  const Extent extent{1, 10, 14, 14};
  EXPECT_EQ(ElementOffset(extent, Layout::kPanels, 3, 50), 10 * 48 + 3 * 48 + 2);
}

TEST(ReferenceLayout, RoundTrip) {
  const Extent extent{3, 17, 5, 3};
  Values values(extent.positions() * extent.channels);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  for (Layout layout : {Layout::kNchw, Layout::kPanels, Layout::kBlocked16}) {
    Values buffer(LayoutElements(extent, layout));
    ToLayout(values, extent, layout, -1, buffer);
    EXPECT_EQ(FromLayout(buffer, extent, layout), values) << LayoutName(layout);
  }
}

}  // namespace
}  // namespace swizzle::reference
