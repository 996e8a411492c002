#include "model_loader/pruning/pruner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/format/csr.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Pruner, SkipsByAnyNameAndRecordsIt) {
  Pruner pruner({.sparsity = 0.5, .skip = {"*/stem/*", "classifier.[wb]*"}});
  std::vector<float> weights = {1.0f, 2.0f};
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {"/net/stem/Conv"}, {"Gemm_1", "classifier.weight"}, {"/net/block/Conv"}}) {
    weights = {1.0f, 2.0f};
    pruner.Prune({names, {1, 2}}, weights);
  }
  ASSERT_EQ(pruner.records().size(), 3u);
  EXPECT_TRUE(pruner.records()[0].skipped);
  EXPECT_TRUE(pruner.records()[1].skipped);
  EXPECT_FALSE(pruner.records()[2].skipped);
  EXPECT_EQ(pruner.records()[1].zeros_after, 0);
  EXPECT_EQ(pruner.records()[2].zeros_before, 0);
  EXPECT_EQ(pruner.records()[2].zeros_after, 1);
  EXPECT_EQ(pruner.records()[1].name, "Gemm_1");
  EXPECT_TRUE(pruner.CheckResult().ok());
}

TEST(Pruner, LayersOfOneShapeCanHaveTheirZerosAtTheSamePlaces) {
  Pruner pruner({.sparsity = 0.5, .alike_zeros = true});
  std::vector<float> first = {1, 4, 2, 3}, second = {4, 1, 3, 0}, turned = {4, 1, 3, 0};
  pruner.Prune({std::vector<std::string>{"a"}, {2, 2}}, first);
  pruner.Prune({std::vector<std::string>{"b"}, {2, 2}}, second);
  pruner.Prune({std::vector<std::string>{"c"}, {2, 2}, true}, turned);
  EXPECT_THAT(first, ElementsAre(0, 4, 0, 3));
  EXPECT_THAT(second, ElementsAre(0, 1, 0, ::testing::Gt(0.0f)));
  EXPECT_THAT(turned, ElementsAre(4, 0, 3, 0)) << "another shape of matrix";
  EXPECT_DOUBLE_EQ(pruner.records()[0].removed_squares, 5.0 / 30);
  EXPECT_DOUBLE_EQ(pruner.records()[1].removed_squares, 1.0 / 26) << "of its own smallest";
}

TEST(Pruner, TellsWhatItPrunes) {
  std::vector<std::string> told;
  const auto tell = [&](const std::string& layer) {
    told.push_back(layer);
    return Status();
  };
  Pruner pruner({.sparsity = 0.5, .skip = {"stem"}, .progress = tell});
  std::vector<float> weights = {1.0f, 2.0f};
  for (const char* name : {"stem", "first", "second"}) {
    const std::vector<std::string> names = {name};
    pruner.Prune({names, {1, 2}}, weights);
  }
  EXPECT_THAT(told, ::testing::ElementsAre("first", "second"));
}

TEST(Pruner, EndsWhereWhoIsToldWantsIt) {
  Pruner pruner({.sparsity = 0.5, .progress = [](const std::string& layer) {
                   return layer == "second" ? Status(StatusCode::kCancelled, "enough") : Status();
                 }});
  std::vector<std::vector<float>> weights(3, {1.0f, 2.0f});
  const std::vector<std::string> names = {"first", "second", "third"};
  for (size_t i = 0; i < names.size(); ++i) pruner.Prune({std::span(names).subspan(i, 1), {1, 2}}, weights[i]);
  EXPECT_EQ(pruner.status().message(), "enough");
  EXPECT_EQ(weights[0][0], 0.0f);
  EXPECT_EQ(weights[1][0], 1.0f);
  EXPECT_EQ(weights[2][0], 1.0f);
}

TEST(Pruner, AMisspeltPatternIsAnError) {
  Pruner pruner({.sparsity = 0.5, .skip = {"clasifier*"}});
  std::vector<float> weights = {1.0f, 2.0f};
  const std::vector<std::string> names = {"classifier"};
  pruner.Prune({names, {1, 2}}, weights);
  EXPECT_THAT(std::string(pruner.CheckResult().message()), HasSubstr("'clasifier*' matches no layer"));
}

TEST(Pruner, NothingToPruneIsAnError) {
  EXPECT_EQ(Pruner({.sparsity = 0.5, .skip = {}}).CheckResult().code(), StatusCode::kInvalidArgument);
}

TEST(PruneNetwork, PrunesConvolutionsButNeverDepthwise) {
  Network network = testing::MakeRandomNetwork({.sparsity = 0.0});
  Pruner pruner({.sparsity = 0.75, .skip = {"Conv0"}});
  PruneNetwork(network, pruner);
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  EXPECT_TRUE(pruner.CheckResult().ok());
  for (const Layer& layer : network.layers) {
    if (layer.weight < 0) continue;
    const Weight& weight = network.weights[layer.weight];
    const int64_t elements = weight.rows() * weight.cols();
    const bool pruned = layer.op == Op::kConv && layer.name != "Conv0";
    EXPECT_EQ(elements - weight.nonzeros(), pruned ? std::llround(0.75 * static_cast<double>(elements)) : 0)
        << layer.name;
    EXPECT_EQ(weight.format(), pruned ? Format::kCsr : Format::kDense) << layer.name;
  }
}

TEST(PruneNetwork, ForgetsWhatWasCountedOfInputs) {
  Network network = testing::MakeRandomNetwork({.sparsity = 0.0});
  for (NetworkValue& value : network.values) value.zeros = InputZeros{.elements = 0.5};
  Pruner pruner({.sparsity = 0.75});
  PruneNetwork(network, pruner);
  for (const NetworkValue& value : network.values) EXPECT_FALSE(value.zeros.has_value()) << "it had other weights";
}

NpyArray ScoresOf(const Shape& shape, const std::vector<float>& scores) {
  const auto bytes = std::as_bytes(std::span(scores));
  return {DType::kFloat32, shape, {bytes.begin(), bytes.end()}};
}

// Weights [inputs, outputs] of a checkpoint's matrix [outputs, inputs], whose shape scores have.
TEST(Pruner, ScoresOfACheckpointAreByOutputs) {
  const std::vector<std::string> names = {"w"};
  for (const bool by_outputs : {false, true}) {
    ScoreFile scores({{"w", ScoresOf({2, 2}, {3, 2, 1, 0})}});
    Pruner pruner({.sparsity = 0.5, .scores = scores});
    std::vector<float> weights = {1, 2, 3, 4};
    pruner.Prune({names, {2, 2}, /*outputs_last=*/true, 1, by_outputs}, weights);
    ASSERT_TRUE(pruner.status().ok()) << pruner.status();
    EXPECT_THAT(weights, by_outputs ? ElementsAre(1, 0, 3, 0) : ElementsAre(1, 2, 0, 0));
  }
}

// What magnitudes alone would leave is the most that can be left.
TEST(Pruner, SharesStandBesideScoresToo) {
  const std::vector<std::string> names = {"w"};
  ScoreFile scores({{"w", ScoresOf({1, 4}, {3, 2, 1, 0})}});
  Pruner pruner({.sparsity = 0.5, .scores = scores});
  std::vector<float> weights = {1, 2, 3, 4};
  pruner.Prune({names, {1, 4}}, weights);
  EXPECT_FLOAT_EQ(pruner.records()[0].kept, 0.3);
  EXPECT_FLOAT_EQ(pruner.records()[0].kept_by_magnitude, 0.7);
  EXPECT_FLOAT_EQ(pruner.records()[0].kept_by_vectors, 0.3);
}

TEST(PruneNetwork, WhatIsSkippedKeepsItsFormat) {
  Network network = testing::MakeRandomNetwork({.sparsity = 0.0});
  Weight* skipped = nullptr;
  for (const Layer& layer : network.layers) {
    if (layer.name == "Conv0") skipped = &network.weights[layer.weight];
  }
  ASSERT_NE(skipped, nullptr);
  ASSERT_EQ(skipped->format(), Format::kDense);
  skipped->matrix = CsrMatrix::FromDense(skipped->ToDense());
  Pruner pruner({.sparsity = 0.75, .skip = {"Conv0"}});
  PruneNetwork(network, pruner);
  EXPECT_EQ(skipped->format(), Format::kCsr);
}

TEST(Pruner, NamesOfMethods) {
  for (const PruneMethodRow& row : PruneMethods()) {
    EXPECT_EQ(PruneMethodFromName(PruneMethodName(row.method)), row.method);
  }
  EXPECT_EQ(PruneMethodFromName("n:m"), std::nullopt);
}

TEST(Pruner, LimitsOfGroups) {
  const auto limit = GroupLimitFromText("3:16");
  ASSERT_TRUE(limit.has_value());
  EXPECT_EQ(limit->n, 3);
  EXPECT_EQ(limit->m, 16);
  for (const char* text : {"", "2", "2:", ":4", "4:4", "0:4", "2:4 ", "-1:4", "2:257", "2:4:8", "a:b", "2;4"}) {
    EXPECT_FALSE(GroupLimitFromText(text).has_value()) << text;
  }
}

// n:m zeros at least what it says, and the smallest besides where more is asked for; others are compared at the same.
TEST(Pruner, NOfMReachesTheSparsityThatIsAskedFor) {
  const DenseMatrix matrix = testing::MakeRandomMatrix(32, 64, 0.0, 9);
  for (const double sparsity : {0.1, 0.5, 0.8}) {
    Pruner pruner({.method = PruneMethod::kNOfM, .vector_rows = 16, .limit = {2, 4}, .sparsity = sparsity});
    std::vector<float> weights = matrix.values;
    const std::vector<std::string> names = {"layer"};
    pruner.Prune({names, {32, 64}}, weights);
    const PruneRecord& record = pruner.records().front();
    EXPECT_EQ(record.zeros_after, std::llround(std::max(0.5, sparsity) * 32 * 64));
    EXPECT_GE(record.kept_by_magnitude, record.kept);
    EXPECT_GT(record.kept, record.kept_by_vectors);
    EXPECT_GT(record.kept_by_vectors, 0.1);
  }
}

// By each method round(0.5 * vectors) go, and what is kept stands in the record beside what others would keep.
TEST(Pruner, RecordsWhatEachMethodKeeps) {
  const DenseMatrix matrix = testing::MakeRandomMatrix(64, 40, 0.0, 3);
  for (const auto method : {PruneMethod::kVectorWise, PruneMethod::kShflBw, PruneMethod::kBlock}) {
    Pruner pruner({.method = method, .vector_rows = 16, .sparsity = 0.5, .skip = {}});
    std::vector<float> weights = matrix.values;
    const std::vector<std::string> names = {"layer"};
    pruner.Prune({names, {64, 40}}, weights);
    const PruneRecord& record = pruner.records().front();
    EXPECT_NEAR(static_cast<double>(record.zeros_after), 32 * 40, 16 * 16);
    EXPECT_NEAR(record.kept, SumOfMagnitudes(weights) / SumOfMagnitudes(matrix.values), 1e-12);
    EXPECT_GT(record.kept_by_magnitude, record.kept);
    EXPECT_GE(record.kept_by_magnitude, record.kept_by_vectors);
    EXPECT_GT(record.kept_by_vectors, 0.5);
    EXPECT_GT(record.kept_by_blocks, 0.5);
    if (method == PruneMethod::kShflBw) {
      EXPECT_GE(record.kept, record.kept_by_vectors);
    } else {
      EXPECT_EQ(record.kept, method == PruneMethod::kBlock ? record.kept_by_blocks : record.kept_by_vectors);
    }
  }
}

TEST(Pruner, OutputsMayBeTheLastDimension) {
  const DenseMatrix matrix = testing::MakeRandomMatrix(32, 20, 0.0, 4);
  std::vector<float> weights = matrix.values, turned(weights.size());
  const auto turn = [](const std::vector<float>& from, std::vector<float>& to) {
    for (int row = 0; row < 32; ++row) {
      for (int col = 0; col < 20; ++col) to[col * 32 + row] = from[row * 20 + col];
    }
  };
  turn(weights, turned);
  Pruner pruner({.method = PruneMethod::kVectorWise, .vector_rows = 16, .sparsity = 0.5, .skip = {}});
  const std::vector<std::string> names = {"layer"};
  pruner.Prune({names, {32, 20}}, weights);
  pruner.Prune({names, {20, 32}, /*outputs_last=*/true}, turned);
  std::vector<float> expected(weights.size());
  turn(weights, expected);
  EXPECT_EQ(turned, expected);
}

}  // namespace
}  // namespace swizzle
