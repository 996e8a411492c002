// Plans of a GPU's kernel table, whose rows compute as the reference does: what plans do with layouts, types and memory
// is right where there is no GPU, too.
#include <gtest/gtest.h>

#include <memory>

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

}  // namespace
}  // namespace swizzle
