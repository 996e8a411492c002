#include "model_loader/regions/region_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;

// Answers as it is told, and notes its budget.
class FakeTuner final : public PlanTuner {
 public:
  FakeTuner(std::function<StatusOr<Tuned>()> tune, std::vector<absl::Duration>& budgets)
      : tune_(std::move(tune)), budgets_(budgets) {}
  StatusOr<Tuned> Tune(MeasureGate&, absl::Duration budget) override {
    budgets_.push_back(budget);
    return tune_();
  }

 private:
  const std::function<StatusOr<Tuned>()> tune_;
  std::vector<absl::Duration>& budgets_;
};

// A gate whose time stands still.
class StoppedGate final : public MeasureGate {
 public:
  bool MustWait() override { return false; }
  Status Await() override { return absl::OkStatus(); }
  int64_t disturbances() const override { return 0; }
  absl::Duration Spent() override { return absl::ZeroDuration(); }
};

// Two layers on vectors, with an operator between them that no plan takes.
std::shared_ptr<const interpreter::Program> TwoLayers() {
  OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Floats("w", {8, 24}, std::vector<float>(192, 0.25f));
  builder.Floats("v", {24, 8}, std::vector<float>(192, 0.5f)).Node("MatMul", {"x", "w"}, {"a"});
  builder.Node("Tan", {"a"}, {"b"}).Node("MatMul", {"b", "v"}, {"y"}).Output("y");
  return *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
}

class RegionTunerTest : public ::testing::Test {
 protected:
  RegionTunerTest() : regional_(PlanRegions(TwoLayers(), *backend_, {.threads = 1, .tuning_budget = {}})) {
    SWIZZLE_CHECK(regional_.regions.size() == 2);
  }

  // A tuner of both regions, each with its script.
  RegionTuner Tuner(std::function<StatusOr<Tuned>()> first, std::function<StatusOr<Tuned>()> second) {
    std::vector<RegionTuner::Tunable> tunables;
    std::array scripts = {std::move(first), std::move(second)};
    for (size_t i = 0; i < scripts.size(); ++i) {
      auto region = std::const_pointer_cast<PlannedRegion>(regional_.regions[i]);
      auto tuner = std::make_unique<FakeTuner>(std::move(scripts[i]), budgets_);
      tunables.push_back({std::move(region), std::move(tuner)});
    }
    return {std::move(tunables), nullptr};
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  const RegionalProgram regional_;
  std::vector<absl::Duration> budgets_;
  StoppedGate gate_;
};

TEST_F(RegionTunerTest, PutsBetterPlansInTheirPlaces) {
  const RegionalProgram others = PlanRegions(TwoLayers(), *backend_, {.threads = 1, .tuning_budget = {}});
  const std::shared_ptr<const Plan> better = others.regions[1]->plan(), before = regional_.regions[0]->plan();
  RegionTuner tuner =
      Tuner([] { return Tuned{.timed_now = 3}; }, [&] { return Tuned{.better = better, .gain = 0.5, .timed_now = 4}; });
  const auto tuned = tuner.Tune(gate_, absl::Seconds(4));
  ASSERT_THAT(tuned, IsOk());
  EXPECT_EQ(tuned->better, nullptr);
  EXPECT_EQ(tuned->replaced, 1);
  EXPECT_EQ(tuned->gain, 0.25);
  EXPECT_EQ(tuned->timed_now, 7);
  EXPECT_TRUE(tuned->complete());
  EXPECT_EQ(regional_.regions[0]->plan(), before);
  EXPECT_EQ(regional_.regions[1]->plan(), better);
}

TEST_F(RegionTunerTest, SharesItsBudgetAmongThoseOfWhichNotAllIsKnown) {
  int pass = 0;
  RegionTuner tuner = Tuner([] { return Tuned{}; }, [&] { return Tuned{.untimed = pass++ == 0 ? 1 : 0}; });
  EXPECT_EQ(tuner.Tune(gate_, absl::Seconds(4))->untimed, 1);
  EXPECT_THAT(budgets_, ElementsAre(absl::Seconds(2), absl::Seconds(4)));
  EXPECT_TRUE(tuner.Tune(gate_, absl::Seconds(3))->complete());
  EXPECT_THAT(budgets_, ElementsAre(absl::Seconds(2), absl::Seconds(4), absl::Seconds(3)));
  EXPECT_TRUE(tuner.Tune(gate_, absl::Seconds(1))->complete());
  EXPECT_EQ(budgets_.size(), 3u);
}

TEST_F(RegionTunerTest, EndsWithAnError) {
  RegionTuner tuner = Tuner([] { return MakeError(StatusCode::kCancelled, "no more"); }, [] { return Tuned{}; });
  EXPECT_THAT(tuner.Tune(gate_, absl::Seconds(1)), IsError(StatusCode::kCancelled, "no more"));
  EXPECT_EQ(budgets_.size(), 1u);
}

TEST_F(RegionTunerTest, RegionsAreReadyOnEstimatesAndMeasuredLater) {
  TunableRegions tunable = PlanTunableRegions(TwoLayers(), *backend_, {.threads = 1});
  ASSERT_EQ(tunable.program.regions.size(), 2u);
  EXPECT_EQ(tunable.program.regions[0]->plan()->report().timed_now, 0);
  ASSERT_NE(tunable.tuner, nullptr);
  const auto tuned = tunable.tuner->Tune(MeasureGate::Open(), absl::Seconds(2));
  ASSERT_THAT(tuned, IsOk());
  EXPECT_GT(tuned->timed_now, 0);
  const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  const TensorView x{DType::kFloat32, {1, 8}, std::as_bytes(std::span(ones))};
  const auto stream = *backend_->NewStream(1);
  const auto y = tunable.program.program->Run(std::span(&x, 1), *stream);
  ASSERT_THAT(y, IsOk());
  EXPECT_NEAR((*y)[0].As<float>()[0], 12 * std::tan(2.0f), 1e-3);
}

}  // namespace
}  // namespace swizzle::regions
