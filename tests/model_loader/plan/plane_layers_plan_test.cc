// Plans of layers that take channels and planes apart and put them together, in every type that plans have.
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_detector.h"

namespace swizzle {
namespace {

struct PlaneCase {
  int threads;
  int64_t image;
  Precision precision;
  float tolerance;
};

class DetectorParityTest : public ::testing::TestWithParam<PlaneCase> {};

TEST_P(DetectorParityTest, EqualsTheReferenceAtEveryBatchSize) {
  const Network network = testing::MakeRandomDetector(GetParam().image);
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  const auto backend = NewCpuBackend();
  PlanOptions options;
  options.threads = GetParam().threads;
  options.precision = GetParam().precision;
  options.tuning_budget = absl::Milliseconds(1);
  const auto plan = MakePlan(network, *backend, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto runner = (*plan)->NewRunner({});
  ASSERT_TRUE(runner.ok());
  for (const int64_t batch : {3, 17, 1}) {
    SCOPED_TRACE(batch);
    const auto input = testing::DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 11);
    const auto expected = testing::EvaluateNetwork(network, {input}, batch);
    testing::ExpectClose(testing::RunImages(**runner, batch, input), expected[0], GetParam().tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, DetectorParityTest,
                         ::testing::Values(PlaneCase{1, 14, Precision::kFloat32, 1e-4f},
                                           PlaneCase{2, 17, Precision::kFloat32, 1e-4f},
                                           PlaneCase{2, 14, Precision::kBFloat16, 3e-2f}));

}  // namespace
}  // namespace swizzle
