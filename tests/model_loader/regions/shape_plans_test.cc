#include "model_loader/regions/shape_plans.h"

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/blueprint.h"
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

std::shared_ptr<const Blueprint> Nothing() {
  static const std::unique_ptr<Backend> backend = NewCpuBackend();
  return std::make_shared<const Blueprint>(*backend, RunSettings(), Network(), std::vector<WeightShape>(),
                                           LayerCandidates(), PreparedWeights(*backend, 0));
}

// Counts how often plans are made, each of so many bytes, some of which are another plan's.
struct Maker {
  ShapePlans::MakePlanFor Function() {
    return [this](const RowShapes&, int64_t, const Blueprint&) -> StatusOr<std::shared_ptr<const Plan>> {
      ++made;
      return std::make_shared<SmallPlan>(bytes, shared);
    };
  }
  int made = 0;
  int64_t bytes = 1, shared = 0;
};

class ShapePlansTest : public ::testing::Test {
 protected:
  ShapePlans Of(Maker& maker) { return {maker.Function(), Nothing(), store_}; }

  const std::shared_ptr<PlanStore> store_ = std::make_shared<PlanStore>();
  Maker maker_;
};

TEST_F(ShapePlansTest, AShapeIsPlannedOnce) {
  ShapePlans plans = Of(maker_);
  const auto first = plans.Find({{3, 8, 8}}, 1);
  EXPECT_EQ(plans.Find({{3, 8, 8}}, 1), first);
  EXPECT_NE(plans.Find({{3, 8, 9}}, 1), first);
  EXPECT_NE(plans.Find({{3, 8, 8}}, 2), first);
  EXPECT_EQ(maker_.made, 3);
}

TEST_F(ShapePlansTest, ThousandsOfSmallPlansAreKept) {
  ShapePlans plans = Of(maker_);
  for (int round = 0; round < 2; ++round) {
    for (int64_t width = 1; width <= 2000; ++width) plans.Find({{width}}, 1);
  }
  EXPECT_EQ(maker_.made, 2000);
}

TEST_F(ShapePlansTest, WhatWasAskedForLongestAgoGoesWhereBytesRunOut) {
  ShapePlans plans = Of(maker_);
  maker_.bytes = PlanStore::kMostBytes / 3;  // with what an entry takes, two of them are kept
  for (const int64_t width : {1, 2, 1, 3}) plans.Find({{width}}, 1);
  EXPECT_EQ(maker_.made, 3);
  plans.Find({{1}}, 1);
  EXPECT_EQ(maker_.made, 3) << "it was asked for after 2";
  plans.Find({{2}}, 1);
  EXPECT_EQ(maker_.made, 4);
  maker_.bytes = 2 * PlanStore::kMostBytes;
  plans.Find({{4}}, 1);
  plans.Find({{4}}, 1);
  EXPECT_EQ(maker_.made, 5) << "the last stays, however large it is";
}

TEST_F(ShapePlansTest, RegionsOfAProgramShareABound) {
  Maker other;
  ShapePlans plans = Of(maker_), others = Of(other);
  plans.Find({{1}}, 1);
  others.Find({{1}}, 1);
  EXPECT_EQ(other.made, 1) << "plans of one region are not another's";
  other.bytes = PlanStore::kMostBytes;
  others.Find({{2}}, 1);
  plans.Find({{1}}, 1);
  EXPECT_EQ(maker_.made, 2);
}

TEST_F(ShapePlansTest, WeightsOfAnotherPlanDoNotCount) {
  maker_.bytes = maker_.shared = PlanStore::kMostBytes;
  ShapePlans plans = Of(maker_);
  for (int round = 0; round < 2; ++round) {
    for (const int64_t width : {1, 2, 3}) plans.Find({{width}}, 1);
  }
  EXPECT_EQ(maker_.made, 3);
}

TEST_F(ShapePlansTest, AreMadeAnewOfOtherWeights) {
  Maker other;
  ShapePlans plans = Of(maker_), others = Of(other);
  plans.Find({{1}}, 1);
  others.Find({{1}}, 1);
  plans.Follow(Nothing());
  plans.Find({{1}}, 1);
  others.Find({{1}}, 1);
  EXPECT_EQ(maker_.made, 2);
  EXPECT_EQ(other.made, 1);
}

TEST_F(ShapePlansTest, WhatCannotBePlannedIsNotTriedAgain) {
  int tries = 0;
  ShapePlans plans(
      [&](const RowShapes&, int64_t, const Blueprint&) -> StatusOr<std::shared_ptr<const Plan>> {
        ++tries;
        return Unimplemented("no");
      },
      Nothing(), store_);
  EXPECT_EQ(plans.Find({{1}}, 1), nullptr);
  EXPECT_EQ(plans.Find({{1}}, 1), nullptr);
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace swizzle::regions
