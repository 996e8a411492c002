#include "model_loader/regions/shape_plans.h"

#include <gtest/gtest.h>

#include "tests/support/fake_plan.h"

namespace swizzle::regions {
namespace {

class SmallPlan : public swizzle::testing::FakePlan {
 public:
  explicit SmallPlan(int64_t bytes) : FakePlan(Network(), 1) { report_.device_bytes = bytes; }
  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override { return nullptr; }
};

// Counts how often plans are made, each of so many bytes.
struct Maker {
  ShapePlans::MakePlanFor Function() {
    return [this](const RowShapes&) -> StatusOr<std::shared_ptr<const Plan>> {
      ++made;
      return std::make_shared<SmallPlan>(bytes);
    };
  }
  int made = 0;
  int64_t bytes = 1;
};

TEST(ShapePlans, AShapeIsPlannedOnce) {
  Maker maker;
  ShapePlans plans(maker.Function());
  const auto first = plans.Find({{3, 8, 8}});
  EXPECT_EQ(plans.Find({{3, 8, 8}}), first);
  EXPECT_NE(plans.Find({{3, 8, 9}}), first);
  EXPECT_EQ(maker.made, 2);
}

TEST(ShapePlans, NeitherPlansNorTheirWeightsGrowWithoutBound) {
  Maker maker;
  ShapePlans plans(maker.Function());
  const auto all = static_cast<int64_t>(ShapePlans::kMostPlans) + 1;
  for (int64_t width = 0; width < all; ++width) plans.Find({{width}});
  plans.Find({{all - 1}});
  EXPECT_EQ(maker.made, all);
  plans.Find({{0}});  // was dropped
  EXPECT_EQ(maker.made, all + 1);
  maker.bytes = ShapePlans::kMostBytes;
  for (const int64_t width : {100, 101, 102}) plans.Find({{width}});
  plans.Find({{101}});
  EXPECT_EQ(maker.made, all + 4);
  plans.Find({{100}});
  EXPECT_EQ(maker.made, all + 5);
}

TEST(ShapePlans, WhatCannotBePlannedIsNotTriedAgain) {
  int tries = 0;
  ShapePlans plans([&](const RowShapes&) -> StatusOr<std::shared_ptr<const Plan>> {
    ++tries;
    return Unimplemented("no");
  });
  EXPECT_EQ(plans.Find({{1}}), nullptr);
  EXPECT_EQ(plans.Find({{1}}), nullptr);
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace swizzle::regions
