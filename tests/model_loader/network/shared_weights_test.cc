#include "model_loader/network/shared_weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/plan/planner.h"
#include "model_loader/pruning/pruner.h"
#include "tests/support/network_reference.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using testing::DrawFloats;
using testing::EvaluateNetwork;
using testing::ExpectClose;
using testing::MustPlan;
using testing::OnnxBuilder;
using testing::RunImages;

constexpr int64_t kSharedChannels = 64;

// x -> so many layers, of which each has the weight of that name.
Network Chain(const std::vector<std::string>& weights) {
  OnnxBuilder builder;
  builder.Input("x", {-1, kSharedChannels});
  builder.Floats("v", {kSharedChannels, kSharedChannels}, DrawFloats(kSharedChannels * kSharedChannels, 3));
  builder.Floats("w", {kSharedChannels, kSharedChannels}, DrawFloats(kSharedChannels * kSharedChannels, 4));
  std::string from = "x";
  for (size_t i = 0; i < weights.size(); ++i) {
    const std::string product = "p" + std::to_string(i), to = "y" + std::to_string(i);
    builder.Node("MatMul", {from, weights[i]}, {product}).Node("Tanh", {product}, {to});
    from = to;
  }
  auto graph = builder.Output(from).Read();
  EXPECT_TRUE(graph.ok() && RunPasses(*graph).ok());
  auto network = Lower(*std::move(graph));
  EXPECT_TRUE(network.ok()) << network.status();
  return *std::move(network);
}

std::vector<int> WeightsOf(const Network& network) {
  std::vector<int> weights;
  for (const Layer& layer : network.layers) {
    if (layer.weight >= 0) weights.push_back(layer.weight);
  }
  return weights;
}

TEST(SharedWeightsTest, LoweringMakesOneOfEqualOnes) {
  const Network network = Chain({"w", "v", "w", "w"});
  EXPECT_EQ(WeightsOf(network), (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(network.weights.size(), 2u);
  EXPECT_TRUE(network.Validate().ok());
}

TEST(SharedWeightsTest, AreApartAndTogetherAgain) {
  Network network = Chain({"w", "v", "w", "w"});
  const int64_t shared = network.StoredWeightBytes();
  UnshareWeights(network);
  EXPECT_EQ(WeightsOf(network), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(network.StoredWeightBytes(), 2 * shared);
  network.weights[2].bias.assign(kSharedChannels, 0.5f);
  EXPECT_EQ(FirstOfAlike(network), (std::vector<size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  ShareWeights(network);
  EXPECT_EQ(WeightsOf(network), (std::vector<int>{0, 1, 2, 0})) << "another bias is another weight";
  EXPECT_EQ(network.weights.size(), 3u);
  EXPECT_TRUE(network.Validate().ok());
}

TEST(SharedWeightsTest, ArePrunedOnce) {
  Network network = Chain({"w", "v", "w"});
  Pruner pruner({.sparsity = 0.75});
  PruneNetwork(network, pruner);
  EXPECT_TRUE(pruner.CheckResult().ok());
  ASSERT_EQ(pruner.records().size(), 2u);
  EXPECT_EQ(network.weights[0].nonzeros(), kSharedChannels * kSharedChannels / 4);
  EXPECT_TRUE(network.Validate().ok());
}

TEST(SharedWeightsTest, PlansPrepareThemOnce) {
  const Network shared = Chain({"w", "w", "w", "w", "v"}), apart = Chain({"w", "v"});
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(shared, *backend), expected = MustPlan(apart, *backend);
  ASSERT_TRUE(plan != nullptr && expected != nullptr);
  EXPECT_EQ(plan->report().device_bytes, expected->report().device_bytes);
  EXPECT_EQ(plan->report().stored_bytes, expected->report().stored_bytes);
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  for (const int64_t batch : {1, 7}) {
    const auto input = DrawFloats(static_cast<size_t>(batch * kSharedChannels), 11);
    ExpectClose(RunImages(**runner, batch, input), EvaluateNetwork(shared, {input}, batch)[0], 1e-4f);
  }
}

}  // namespace
}  // namespace swizzle
