#include "model_loader/plan/share_weights.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/plan/planner.h"
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

constexpr int64_t kChannels = 64;

// x -> so many layers, of which each has the weight of that name.
Network Chain(const std::vector<std::string>& weights) {
  OnnxBuilder builder;
  builder.Input("x", {-1, kChannels});
  builder.Floats("v", {kChannels, kChannels}, DrawFloats(kChannels * kChannels, 3));
  builder.Floats("w", {kChannels, kChannels}, DrawFloats(kChannels * kChannels, 4));
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

TEST(ShareWeightsTest, EqualOnesBecomeOne) {
  Network network = Chain({"w", "v", "w", "w"});
  ASSERT_EQ(network.weights.size(), 4u) << "a network has one a layer";
  const int64_t before = network.StoredWeightBytes();
  ShareWeights(network);
  std::vector<int> weights;
  for (const Layer& layer : network.layers) {
    if (layer.weight >= 0) weights.push_back(layer.weight);
  }
  EXPECT_EQ(weights, (std::vector<int>{0, 1, 0, 0}));
  EXPECT_EQ(network.StoredWeightBytes() * 2, before);
}

TEST(ShareWeightsTest, AnotherBiasIsAnotherWeight) {
  Network network = Chain({"w", "w"});
  network.weights[1].bias.assign(kChannels, 0.5f);
  ShareWeights(network);
  EXPECT_EQ(FirstOfAlike(network), (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(ShareWeightsTest, PlansPrepareThemOnce) {
  const Network shared = Chain({"w", "w", "w", "w", "v"}), apart = Chain({"w", "v"});
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(shared, *backend), expected = MustPlan(apart, *backend);
  ASSERT_TRUE(plan != nullptr && expected != nullptr);
  EXPECT_EQ(plan->report().device_bytes, expected->report().device_bytes);
  EXPECT_EQ(plan->report().stored_bytes, expected->report().stored_bytes);
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  for (const int64_t batch : {1, 7}) {
    const auto input = DrawFloats(static_cast<size_t>(batch * kChannels), 11);
    ExpectClose(RunImages(**runner, batch, input), EvaluateNetwork(shared, {input}, batch)[0], 1e-4f);
  }
}

}  // namespace
}  // namespace swizzle
