#include "model_loader/text/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "model_loader/compiled/compile.h"
#include "model_loader/text/dense.h"
#include "tests/support/graph_text.h"
#include "tests/support/plan_runs.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;

std::vector<float> Floats(const TensorView& view) {
  std::vector<float> floats(view.bytes.size() / sizeof(float));
  std::memcpy(floats.data(), view.bytes.data(), view.bytes.size());
  return floats;
}

// The encoder of a shipped checkpoint on two sequences, of which the mask leaves some tokens out.
class PooledEncoderTest : public ::testing::Test {
 protected:
  // Its first output, and its shape.
  std::pair<std::vector<float>, Shape> Run(const GraphRevision& revise) {
    auto model = LoadRunnableModel(SWIZZLE_SOURCE_DIR "/tests/testdata/checkpoints/bert", {.revise = revise});
    EXPECT_THAT(model, IsOk());
    EXPECT_TRUE(std::holds_alternative<LoadedModel>(*model)) << "one plan takes the pooling, too";
    const auto compiled = CompileFor(devices_, *std::move(model), {.max_batch = 2, .max_tokens = 16, .threads = 1});
    EXPECT_THAT(compiled, IsOk());
    const auto runner = compiled->NewRunner({});
    EXPECT_THAT(runner, IsOk());
    std::vector<TensorView> inputs;
    for (const interpreter::Port& port : compiled->interface().inputs) {
      const std::vector<int64_t>& values = port.name == "input_ids"        ? ids_
                                           : port.name == "attention_mask" ? mask_
                                                                           : types_;
      inputs.push_back({DType::kInt64, {2, 4}, std::as_bytes(std::span(values))});
    }
    const auto outputs = (*runner)->RunViews(inputs);
    EXPECT_THAT(outputs, IsOk());
    EXPECT_EQ(outputs->size() == 1, revise != nullptr);
    return {Floats((*outputs)[0]), (*outputs)[0].shape};
  }

  const Devices devices_ = *Devices::Open("cpu");
  const std::vector<int64_t> ids_ = {1, 2, 3, 4, 5, 6, 7, 8}, mask_ = {1, 1, 1, 1, 1, 1, 0, 0},
                             types_ = {0, 0, 0, 0, 0, 0, 0, 0};
};

TEST_F(PooledEncoderTest, TheMeanIsOfWhatTheMaskLetsThrough) {
  const auto [states, shape] = Run(nullptr);
  ASSERT_EQ(shape.size(), 3u);
  const auto width = static_cast<size_t>(shape[2]);
  const auto [pooled, pooled_shape] = Run([](Graph& graph) { return PoolTokens(Pooling::kMean, graph); });
  EXPECT_EQ(pooled_shape, (Shape{2, shape[2]}));
  std::vector<float> expected(2 * width);
  for (size_t row = 0; row < 2; ++row) {
    const size_t tokens = row == 0 ? 4 : 2;
    for (size_t i = 0; i < tokens * width; ++i) {
      expected[row * width + i % width] += states[row * 4 * width + i] / static_cast<float>(tokens);
    }
  }
  swizzle::testing::ExpectClose(pooled, expected, 1e-5f);
}

TEST_F(PooledEncoderTest, TheFirstTokenStandsForAll) {
  const auto [states, shape] = Run(nullptr);
  const auto width = shape[2];
  const auto [pooled, pooled_shape] = Run([](Graph& graph) { return PoolTokens(Pooling::kFirst, graph); });
  EXPECT_EQ(pooled_shape, (Shape{2, width}));
  std::vector<float> expected(states.begin(), states.begin() + width);
  expected.insert(expected.end(), states.begin() + 4 * width, states.begin() + 5 * width);
  swizzle::testing::ExpectClose(pooled, expected, 1e-5f);
}

TEST_F(PooledEncoderTest, OfTheLastTokenTheStatesAreLeft) {
  const auto [states, shape] = Run(nullptr);
  const auto [left, left_shape] = Run([](Graph& graph) { return PoolTokens(Pooling::kLast, graph); });
  EXPECT_EQ(left_shape, shape);
  swizzle::testing::ExpectClose(left, states, 1e-5f);  // Each plan chooses kernels, which round their sums differently.
}

TEST_F(PooledEncoderTest, VectorsGoThroughDenseLayers) {
  const auto [pooled, pooled_shape] = Run([](Graph& graph) { return PoolTokens(Pooling::kMean, graph); });
  const auto width = static_cast<size_t>(pooled_shape[1]);
  std::vector<float> weight(width * 3);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = std::sin(static_cast<float>(i));
  const std::vector<float> bias = {1.0f, 0.0f, -1.0f};
  const DenseLayer layer{.name = "2_Dense",
                         .weight = Tensor::Floats({static_cast<int64_t>(width), 3}, weight),
                         .bias = Tensor::Floats({3}, bias),
                         .activation = "Tanh"};
  const auto [dense, dense_shape] = Run([&](Graph& graph) {
    const Status done = PoolTokens(Pooling::kMean, graph);
    return done.ok() ? AddDense(layer, graph) : done;
  });
  EXPECT_EQ(dense_shape, (Shape{2, 3}));
  std::vector<float> expected;
  for (size_t row = 0; row < 2; ++row) {
    for (size_t k = 0; k < 3; ++k) {
      float sum = bias[k];
      for (size_t i = 0; i < width; ++i) sum += pooled[row * width + i] * weight[i * 3 + k];
      expected.push_back(std::tanh(sum));
    }
  }
  swizzle::testing::ExpectClose(dense, expected, 1e-5f);
  auto graph = swizzle::testing::ParseGraph("\ninput %x: FP32[N,8]\noutput \"x\" = %x\n", 17);
  ASSERT_THAT(graph, IsOk());
  graph->outputs[0].shape = Shape{-1, 9};
  EXPECT_THAT(AddDense(layer, *graph), IsError(StatusCode::kInvalidArgument, "vectors before it have 9"));
}

TEST(PoolTokensTest, KeepsWhatIsPooledAlready) {
  auto graph = swizzle::testing::ParseGraph(R"(
input %x: FP32[N,8]
%a = Relu(%x) "a" -> FP32[?]
%b = Neg(%x) "b" -> FP32[?]
output "last_hidden_state" = %a
output "sentence_embedding" = %b
)",
                                            17);
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(PoolTokens(Pooling::kMean, *graph), IsOk());
  ASSERT_EQ(graph->outputs.size(), 1u);
  EXPECT_EQ(graph->outputs[0].name, "sentence_embedding");
  EXPECT_EQ(graph->nodes.size(), 2u);
}

TEST(KeepLogitsTest, LeavesLogitsAlone) {
  const auto parsed = [](const std::string& outputs) {
    auto graph = swizzle::testing::ParseGraph(
        "\ninput %x: FP32[N,8]\n%a = Relu(%x) \"a\" -> FP32[?]\n%b = Neg(%x) \"b\" -> FP32[?]\n" + outputs, 17);
    EXPECT_THAT(graph, IsOk());
    return *std::move(graph);
  };
  Graph graph = parsed("output \"pooler_output\" = %a\noutput \"logits\" = %b\n");
  EXPECT_THAT(KeepLogits(graph), IsOk());
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.outputs[0].name, "logits");
  graph = parsed("output \"probabilities\" = %a\n");
  EXPECT_THAT(KeepLogits(graph), IsOk()) << "there is no other";
  EXPECT_EQ(graph.outputs[0].name, "probabilities");
  for (const std::string vector : {"sentence_embedding", "pooler_output"}) {
    graph = parsed("output \"" + vector + "\" = %a\n");
    EXPECT_THAT(KeepLogits(graph), IsError(StatusCode::kInvalidArgument, "its outputs are '" + vector + "'"));
  }
  graph = parsed("output \"a\" = %a\noutput \"b\" = %b\n");
  EXPECT_THAT(KeepLogits(graph), IsError(StatusCode::kInvalidArgument, "its outputs are 'a', 'b'"));
}

TEST(PoolTokensTest, StatesAreFoundBesideWhatIsPooled) {
  Graph graph;
  const auto add = [&](const char* name, std::optional<Shape> shape) {
    const int value = graph.AddValue({Concat("value of ", name), DType::kFloat32, std::nullopt, std::nullopt});
    graph.outputs.push_back({name, value, DType::kFloat32, std::move(shape)});
    return value;
  };
  add("sentence_embedding", std::nullopt);
  EXPECT_THAT(StatesOf(graph), IsError(StatusCode::kInvalidArgument, "no states of tokens"));
  const int states = add("last_hidden_state", std::nullopt);
  const auto found = StatesOf(graph);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(found->value, states);
  EXPECT_EQ(found->name, kStatesName);
}

TEST(PoolTokensTest, SaysWhatIsMissing) {
  auto graph = swizzle::testing::ParseGraph(R"(
input %x: FP32[N,8]
%a = Relu(%x) "a" -> FP32[?]
output "logits" = %a
output "scores" = %a
)",
                                            17);
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(PoolTokens(Pooling::kMean, *graph),
              IsError(StatusCode::kInvalidArgument, "its outputs are 'logits', 'scores'"));
  graph->outputs = {{"states", graph->outputs[0].value}};
  EXPECT_THAT(PoolTokens(Pooling::kMean, *graph), IsError(StatusCode::kInvalidArgument, "no input attention_mask"));
  EXPECT_THAT(PoolTokens(Pooling::kFirst, *graph), IsOk());
}

}  // namespace
}  // namespace swizzle::text
