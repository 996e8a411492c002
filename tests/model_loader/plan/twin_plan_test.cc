// Plans of a GPU's kernel table, whose rows compute as the reference does: what plans do with layouts, types and memory
// is right where there is no GPU, too.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/kernel_table.h"
#include "model_loader/plan/planner.h"
#include "tests/model_loader/plan/gpu_networks.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"
#include "tests/support/twin_device.h"

namespace swizzle {
namespace {

std::shared_ptr<const Plan> Estimated(const Network& network, Backend& backend, Precision precision) {
  PlanOptions options;
  options.max_batch = 8;
  options.precision = precision;
  options.tuning_budget = absl::ZeroDuration();
  auto plan = MakePlan(network, backend, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : nullptr;
}

TEST(TwinPlanTest, OperandsLieWhereTheyGo) {
  const Network network = testing::Detector().Build();
  for (auto* const keeps : {testing::IsInRows, testing::IsInNhwc, testing::CopiesInBatched, testing::IsAny}) {
    testing::TwinDevice twin(cuda::KernelTable(), keeps);
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16}) {
      if (keeps == testing::CopiesInBatched && precision == Precision::kFloat32) continue;  // has no such rows
      const auto plan = Estimated(network, twin, precision);
      ASSERT_NE(plan, nullptr);
      auto runner = *plan->NewRunner({});
      for (const int64_t batch : {3, 1, 8, 5}) {
        SCOPED_TRACE(Concat(PrecisionName(precision), ", batch ", batch));
        const auto drawn = testing::DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 7);
        testing::ExpectClose(testing::RunImages(*runner, batch, drawn),
                             testing::EvaluateNetwork(network, {drawn}, batch)[0],
                             precision == Precision::kFloat32 ? 1e-4f : 1e-2f);
      }
    }
  }
}

TEST(TwinPlanTest, FirstLayersArePooled) {
  testing::TwinDevice twin(cuda::KernelTable(), testing::ConvertsNoImage);
  for (const bool bytes : {false, true}) {
    Network network = testing::StemNetwork(37, 52);
    const Network real = network;
    if (bytes) {
      network.inputs[0].dtype = DType::kUint8;
      network.values[0].quantisation = Quantisation{DType::kUint8, {1.0f / 64}, {100}};
    }
    const auto plan = Estimated(network, twin, Precision::kFloat16);
    ASSERT_NE(plan, nullptr);
    EXPECT_NE(plan->report().layers[0].kernels[0].find("conv_pool_"), std::string::npos);
    EXPECT_EQ(plan->report().layers[1].kernels[0], "");
    auto runner = *plan->NewRunner({});
    for (const int64_t batch : {3, 1, 8}) {
      const auto count = static_cast<size_t>(batch * network.values[0].elements());
      auto drawn = testing::DrawFloats(count, 7);
      std::vector<float> actual;
      if (bytes) {
        const auto steps = testing::DrawBytes(count, 7);
        for (size_t i = 0; i < count; ++i) drawn[i] = (static_cast<float>(steps[i]) - 100) / 64;
        actual = testing::RunBytes(*runner, batch, steps);
      } else {
        actual = testing::RunImages(*runner, batch, drawn);
      }
      testing::ExpectClose(actual, testing::EvaluateNetwork(real, {drawn}, batch)[0], 1e-2f);
    }
  }
}

// Whatever times say: nothing converts what is pooled, though it looks like what another kernel stores whole.
TEST(TwinPlanTest, PooledValuesAreNotConverted) {
  Network network = testing::StemNetwork(37, 52);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    testing::TwinDevice twin(cuda::KernelTable(), testing::IsAny, seed);
    PlanOptions options;
    options.precision = Precision::kFloat16;
    options.tuning_budget = absl::Seconds(1);
    const auto plan = MakePlan(network, twin, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
  }
}

}  // namespace
}  // namespace swizzle
