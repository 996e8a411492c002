#include "model_loader/regions/shape_plans.h"

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/fake_plan.h"

namespace swizzle::regions {
namespace {

class SmallPlan : public swizzle::testing::FakePlan {
 public:
  SmallPlan(int64_t bytes, int64_t shared) : FakePlan(Network(), 1) {
    report_.device_bytes = bytes;
    report_.shared_bytes = shared;
  }
  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override { return nullptr; }
};

std::shared_ptr<const PreparedWeights> NoWeights() {
  static const std::unique_ptr<Backend> backend = NewCpuBackend();
  return std::make_shared<const PreparedWeights>(*backend, 0);
}

// Counts how often plans are made, each of so many bytes, some of which are another plan's.
struct Maker {
  ShapePlans::MakePlanFor Function() {
    return [this](const RowShapes&, const PreparedWeights&) -> StatusOr<std::shared_ptr<const Plan>> {
      ++made;
      return std::make_shared<SmallPlan>(bytes, shared);
    };
  }
  int made = 0;
  int64_t bytes = 1, shared = 0;
};

TEST(ShapePlans, AShapeIsPlannedOnce) {
  Maker maker;
  ShapePlans plans(maker.Function(), NoWeights());
  const auto first = plans.Find({{3, 8, 8}});
  EXPECT_EQ(plans.Find({{3, 8, 8}}), first);
  EXPECT_NE(plans.Find({{3, 8, 9}}), first);
  EXPECT_EQ(maker.made, 2);
}

TEST(ShapePlans, NeitherPlansNorTheirWeightsGrowWithoutBound) {
  Maker maker;
  ShapePlans plans(maker.Function(), NoWeights());
  const auto all = static_cast<int64_t>(ShapePlans::kMostPlans) + 1;
  for (int64_t width = 0; width < all; ++width) plans.Find({{width}});
  plans.Find({{all - 1}});
  EXPECT_EQ(maker.made, all);
  plans.Find({{0}});  // was dropped
  EXPECT_EQ(maker.made, all + 1);
  maker.bytes = ShapePlans::kMostBytes;
  for (const int64_t width : {1000, 1001, 1002}) plans.Find({{width}});
  plans.Find({{1001}});
  EXPECT_EQ(maker.made, all + 4);
  plans.Find({{1000}});
  EXPECT_EQ(maker.made, all + 5);
}

TEST(ShapePlans, WeightsOfAnotherPlanDoNotCount) {
  Maker maker;
  maker.bytes = maker.shared = ShapePlans::kMostBytes;
  ShapePlans plans(maker.Function(), NoWeights());
  for (int round = 0; round < 2; ++round) {
    for (const int64_t width : {1, 2, 3}) plans.Find({{width}});
  }
  EXPECT_EQ(maker.made, 3);
}

TEST(ShapePlans, AreMadeAnewOfOtherWeights) {
  Maker maker;
  ShapePlans plans(maker.Function(), NoWeights());
  plans.Find({{1}});
  plans.Follow(NoWeights());
  plans.Find({{1}});
  EXPECT_EQ(maker.made, 2);
}

TEST(ShapePlans, WhatCannotBePlannedIsNotTriedAgain) {
  int tries = 0;
  ShapePlans plans(
      [&](const RowShapes&, const PreparedWeights&) -> StatusOr<std::shared_ptr<const Plan>> {
        ++tries;
        return Unimplemented("no");
      },
      NoWeights());
  EXPECT_EQ(plans.Find({{1}}), nullptr);
  EXPECT_EQ(plans.Find({{1}}), nullptr);
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace swizzle::regions
