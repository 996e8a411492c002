// Plans in BF16 on the CPU compute what plans in FP32 compute, as near as bfloat16 activations come.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/planner.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using testing::Batch;
using testing::DrawFloats;
using testing::ExpectClose;
using testing::MakeRandomEncoder;
using testing::MakeRandomNetwork;
using testing::MustPlan;
using testing::RunImages;
using testing::RunSequences;

constexpr float kTolerance = 6e-2f;

// From estimates alone, so that the choice is the same everywhere: sparse kernels where there are zeros.
std::shared_ptr<const Plan> EstimatedPlan(const Network& network, Backend& backend, Precision precision, int threads) {
  PlanOptions options;
  options.threads = threads;
  options.max_tokens = 512;
  options.precision = precision;
  options.tuning_budget = absl::ZeroDuration();
  auto plan = MakePlan(network, backend, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : nullptr;
}

int CountRounding(const Plan& plan) {
  const auto rounds = [](const LayerReport& layer) { return layer.kernels[0].find("_bf16_") != std::string::npos; };
  return static_cast<int>(std::ranges::count_if(plan.report().layers, rounds));
}

TEST(Bfloat16PlanTest, NetworksOfImagesAreCloseToSingle) {
  const auto backend = NewCpuBackend();
  for (const double sparsity : {0.0, 0.9}) {
    for (const int threads : {1, 2}) {
      const Network network = MakeRandomNetwork({.sparsity = sparsity, .image = 33});
      const auto single = MustPlan(network, *backend);
      const auto estimated = EstimatedPlan(network, *backend, Precision::kBFloat16, threads);
      const auto measured = MustPlan(network, *backend, Precision::kBFloat16);
      ASSERT_TRUE(single != nullptr && estimated != nullptr && measured != nullptr);
      const bool sparse = sparsity > 0;
      EXPECT_GT(CountRounding(*estimated), sparse ? 3 : -1);
      auto single_runner = *single->NewRunner({}), estimated_runner = *estimated->NewRunner({});
      auto measured_runner = *measured->NewRunner({});
      for (const int64_t batch : {3, 64, 1, 17, 2}) {
        SCOPED_TRACE(Concat("sparsity ", sparsity, ", threads ", threads, ", batch ", batch));
        const auto input = DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 7);
        const auto expected = RunImages(*single_runner, batch, input);
        const auto actual = RunImages(*estimated_runner, batch, input);
        ExpectClose(actual, expected, kTolerance);
        EXPECT_TRUE(!sparse || actual != expected);  // it did round
        ExpectClose(RunImages(*measured_runner, batch, input), expected, kTolerance);
      }
    }
  }
}

TEST(Bfloat16PlanTest, EncodersAreCloseToSingle) {
  const auto backend = NewCpuBackend();
  for (const double sparsity : {0.0, 0.9}) {
    // Heads of the second share keys and values.
    const Network network = MakeRandomEncoder({.sparsity = sparsity, .group_size = sparsity == 0.0 ? 1 : 2});
    const auto single = MustPlan(network, *backend);
    const auto rounding = EstimatedPlan(network, *backend, Precision::kBFloat16, 2);
    ASSERT_TRUE(single != nullptr && rounding != nullptr);
    auto single_runner = *single->NewRunner({}), rounding_runner = *rounding->NewRunner({});
    for (const std::vector<int32_t>& lengths :
         std::vector<std::vector<int32_t>>{{7}, {1}, {70, 3, 1, 66}, {1, 1, 1}, {60, 60, 60, 60, 60, 60, 60, 60}}) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(Concat("sparsity ", sparsity, ", first length ", lengths[0], masked ? ", masked" : ""));
        const Batch batch(lengths, masked);
        const auto expected = RunSequences(*single_runner, batch);
        const auto actual = RunSequences(*rounding_runner, batch);
        for (int i = 0; i < 2; ++i) ExpectClose(actual[i], expected[i], kTolerance);
      }
    }
  }
}

TEST(Bfloat16PlanTest, TheArenaIsSmaller) {
  const auto backend = NewCpuBackend();
  const Network network = MakeRandomNetwork({.sparsity = 0.9, .image = 33});
  const auto single = EstimatedPlan(network, *backend, Precision::kFloat32, 1);
  const auto rounding = EstimatedPlan(network, *backend, Precision::kBFloat16, 1);
  ASSERT_TRUE(single != nullptr && rounding != nullptr);
  EXPECT_LT(rounding->arena_bytes(), single->arena_bytes());
}

TEST(Bfloat16PlanTest, OtherPrecisionsAreRefused) {
  const auto backend = NewCpuBackend();
  for (const Precision precision : {Precision::kFloat16x3, Precision::kTf32, Precision::kFloat16}) {
    PlanOptions options;
    options.precision = precision;
    const auto plan = MakePlan(MakeRandomNetwork({}), *backend, options);
    EXPECT_EQ(plan.status().code(), StatusCode::kUnimplemented);
    const std::string message(plan.status().message());
    EXPECT_NE(message.find(PrecisionName(precision)), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace swizzle
