// Plans in which operands of Concats lie in what these make, and Slices in what they are of, compute what the CPU does,
// in every layout and at batches that move rows. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <memory>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "model_loader/plan/planner.h"
#include "tests/model_loader/plan/gpu_networks.h"
#include "tests/support/filtered_backend.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

TEST(CudaNestedPlanTest, ComputesWhatTheCpuDoes) {
  const auto gpu = NewCudaBackend(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  const Network network = testing::Detector().Build();
  const auto cpu = NewCpuBackend();
  const auto expected_plan = testing::MustPlan(network, *cpu);
  ASSERT_NE(expected_plan, nullptr);
  auto expected_runner = *expected_plan->NewRunner({});
  for (auto* const keeps : {testing::IsInRows, testing::IsInNhwc, testing::CopiesInBatched, testing::IsAny}) {
    testing::FilteredBackend backend(**gpu, keeps);
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16}) {
      if (keeps == testing::CopiesInBatched && precision == Precision::kFloat32) continue;  // has no such rows
      const auto plan = testing::MustPlan(network, backend, precision);
      ASSERT_NE(plan, nullptr);
      auto runner = *plan->NewRunner({});
      for (const int64_t batch : {3, 1, 8, 5, 3}) {
        SCOPED_TRACE(Concat(PrecisionName(precision), ", batch ", batch));
        const auto drawn = testing::DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 7);
        testing::ExpectClose(testing::RunImages(*runner, batch, drawn),
                             testing::RunImages(*expected_runner, batch, drawn),
                             precision == Precision::kFloat32 ? 1e-4f : 1e-2f);
      }
    }
  }
}

}  // namespace
}  // namespace swizzle
