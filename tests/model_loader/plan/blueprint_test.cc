// Plans of a network for other planes, by what a plan before left.
#include "model_loader/plan/blueprint.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "model_loader/network/extent_rules.h"
#include "model_loader/plan/planner.h"
#include "tests/support/counting_backend.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::kNoEpilogue;
using testing::kRelu;
using testing::NetworkBuilder;
using testing::SquareWindow;

Network Images(int64_t height, int64_t width, double sparsity) {
  NetworkBuilder builder(5, 0);
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

class BlueprintTest : public ::testing::TestWithParam<double> {
 protected:
  BlueprintTest() {
    PlanMaterials materials(Images(32, 32, GetParam()));
    materials.leaves_blueprint = true;
    first_ = *MakePlan(materials, backend_, options_);
    blueprint_ = materials.blueprint;
    rules_ = ExtentRules::Learn(blueprint_->network(), Images(64, 96, GetParam()));
    backend_.streams = backend_.prepared = 0;
  }
  Network At(int64_t height, int64_t width) const {
    return *rules_->Apply(blueprint_->network(), std::vector<Shape>{{3, height, width}});
  }
  std::vector<float> Run(const Plan& plan) {
    const auto input = testing::DrawFloats(static_cast<size_t>(3 * plan.network().values[0].elements()), 3);
    const auto runner = plan.NewRunner({});
    EXPECT_THAT(runner.status(), IsOk());
    return testing::RunImages(**runner, 3, input);
  }

  const PlanOptions options_{.max_batch = 4, .threads = 2, .tuning_budget = absl::ZeroDuration()};
  testing::CountingBackend backend_;
  std::shared_ptr<const Plan> first_;
  std::shared_ptr<const Blueprint> blueprint_;
  std::optional<ExtentRules> rules_;
};

TEST_P(BlueprintTest, PlansComputeWhatTheirOwnNetworksDo) {
  ASSERT_NE(blueprint_, nullptr);
  ASSERT_TRUE(rules_.has_value());
  for (const auto& [height, width] : {std::pair(48, 20), std::pair(7, 129), std::pair(32, 32), std::pair(50, 22)}) {
    const auto plan = blueprint_->MakePlan(At(height, width), options_);
    ASSERT_THAT(plan.status(), IsOk());
    const auto alone = MakePlan(Images(height, width, GetParam()), backend_, options_);
    ASSERT_THAT(alone.status(), IsOk());
    testing::ExpectClose(Run(**plan), Run(**alone), 1e-4f);
  }
}

TEST_P(BlueprintTest, NoThreadIsStartedAndNoWeightPrepared) {
  int64_t most = 0;
  for (int64_t width = 20; width < 84; ++width) {
    const auto plan = blueprint_->MakePlan(At(40, width), options_);
    ASSERT_THAT(plan.status(), IsOk());
    most = std::max(most, (*plan)->report().device_bytes - (*plan)->report().shared_bytes);
    EXPECT_EQ((*plan)->report().threads, 2);
    EXPECT_GT((*plan)->report().program_bytes, 0);
  }
  EXPECT_EQ(backend_.streams, 0);
  EXPECT_EQ(backend_.prepared, 0);
  // What is not shared goes by the plane: masks, and a library's code where layers are dense.
  if (GetParam() > 0.0) {
    EXPECT_LT(most, first_->report().device_bytes / 2);
  }
}

TEST_P(BlueprintTest, RefusesOtherLayers) {
  Network other = At(40, 40);
  other.layers.pop_back();
  EXPECT_THAT(blueprint_->MakePlan(std::move(other), options_).status(),
              IsError(StatusCode::kUnimplemented, "the layers are others"));
}

INSTANTIATE_TEST_SUITE_P(Sparsities, BlueprintTest, ::testing::Values(0.0, 0.9));

TEST(Blueprint, IsLeftOnlyToWhoAsks) {
  testing::CountingBackend backend;
  PlanMaterials materials(Images(16, 16, 0.9));
  ASSERT_THAT(MakePlan(materials, backend, {.threads = 2, .tuning_budget = absl::ZeroDuration()}).status(), IsOk());
  EXPECT_EQ(materials.blueprint, nullptr);
  EXPECT_EQ(backend.streams, 0) << "nothing is measured, and the number of threads is known";
}

}  // namespace
}  // namespace swizzle
