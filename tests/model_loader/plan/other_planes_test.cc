// Plans of networks that differ in the planes of their values alone: they share weights as kernels hold them, and
// compute what plans of their own would.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/planner.h"
#include "model_loader/plan/weight_facts.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsOk;
using testing::kNoEpilogue;
using testing::kRelu;
using testing::NetworkBuilder;
using testing::SquareWindow;

// Images of this size through layers of each kind; `sparsity` of the pointwise ones.
Network Images(int64_t height, int64_t width, double sparsity, uint32_t seed = 5) {
  NetworkBuilder builder(seed, 0);
  const int image = builder.Value("image", 3, height, width);
  int value = builder.Conv(image, 32, SquareWindow(3, 2, 1), 0.0, kRelu);
  value = builder.Depthwise(value, SquareWindow(3, 1, 1), kRelu);
  const int wide = builder.Conv(value, 64, SquareWindow(1, 1, 0), sparsity, kRelu);
  value = builder.Conv(wide, 64, SquareWindow(3, 1, 1), sparsity, kRelu);
  value = builder.Conv(value, 64, SquareWindow(1, 1, 0), sparsity, kNoEpilogue, wide);
  const NetworkPort input = builder.Port(image, "image"), output = builder.Port(value, "features");
  Network network = builder.Finish();
  network.inputs = {input};
  network.outputs = {output};
  return network;
}

class OtherPlanesTest : public ::testing::TestWithParam<double> {
 protected:
  std::shared_ptr<const Plan> PlanOf(PlanMaterials& materials) {
    const PlanOptions options{.max_batch = 4, .threads = 2, .tuning_budget = absl::ZeroDuration()};
    auto plan = MakePlan(materials, *backend_, options);
    EXPECT_THAT(plan.status(), IsOk());
    return plan.ok() ? *std::move(plan) : nullptr;
  }
  std::vector<float> Run(const Plan& plan) {
    const auto input = testing::DrawFloats(static_cast<size_t>(3 * plan.network().values[0].elements()), 3);
    const auto runner = plan.NewRunner({});
    EXPECT_THAT(runner.status(), IsOk());
    return testing::RunImages(**runner, 3, input);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
};

TEST_P(OtherPlanesTest, ShareWeightsAndComputeTheSame) {
  PlanMaterials first(Images(32, 32, GetParam()));
  const uint64_t content = ContentHash(first.network);
  ASSERT_NE(PlanOf(first), nullptr);
  for (const auto& [height, width] : {std::pair(48, 20), std::pair(7, 129)}) {
    PlanMaterials other(Images(height, width, GetParam()));
    EXPECT_EQ(ContentHash(other.network), content);
    other.weights = first.weights;
    other.other_planes = true;
    const auto shared = PlanOf(other);
    PlanMaterials own(Images(height, width, GetParam()));
    const auto alone = PlanOf(own);
    ASSERT_TRUE(shared != nullptr && alone != nullptr);
    EXPECT_EQ(alone->report().shared_bytes, 0);
    // What is left goes by the plane: a depthwise layer's masks and, where layers are dense, a library's code.
    EXPECT_LT(shared->report().device_bytes - shared->report().shared_bytes, alone->report().device_bytes / 2);
    testing::ExpectClose(Run(*shared), Run(*alone), 1e-4f);
  }
}

INSTANTIATE_TEST_SUITE_P(Sparsities, OtherPlanesTest, ::testing::Values(0.0, 0.9));

TEST(ContentHash, IsOfValuesAndNotOfPlanes) {
  const uint64_t content = ContentHash(Images(8, 8, 0.9));
  EXPECT_EQ(ContentHash(Images(16, 12, 0.9)), content);
  EXPECT_NE(ContentHash(Images(8, 8, 0.9, 6)), content);
  Network changed = Images(8, 8, 0.9);
  changed.weights.back().bias.front() += 1.0f;
  EXPECT_NE(ContentHash(changed), content);
}

}  // namespace
}  // namespace swizzle
