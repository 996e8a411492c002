#include "model_loader/plan/plan_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_network.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::swizzle::testing::IsOk;
using ::swizzle::testing::MakeRandomNetwork;

// A clock of its own, that moves with each look: real kernels, and a time that no machine has a part in.
class TickingGate final : public MeasureGate {
 public:
  explicit TickingGate(absl::Duration tick) : tick_(tick) {}
  bool MustWait() override { return cancelled; }
  Status Await() override { return MakeError(StatusCode::kCancelled, "stopped"); }
  int64_t disturbances() const override { return disturbed ? ++others_ : 0; }
  absl::Duration Spent() override { return now_ += tick_; }
  absl::Duration now() const { return now_; }
  bool cancelled = false, disturbed = false;

 private:
  const absl::Duration tick_;
  absl::Duration now_;
  mutable int64_t others_ = 0;
};

// A processor whose kernels have chosen algorithms of a library.
class ChoosingBackend final : public HostBackend, public AlgorithmChooser {
 public:
  std::string_view name() const override { return cpu_->name(); }
  std::string device_name() const override { return cpu_->device_name(); }
  uint32_t features() const override { return cpu_->features(); }
  std::string features_text() const override { return cpu_->features_text(); }
  std::span<const Kernel> kernels() const override { return cpu_->kernels(); }
  bool Computes(Precision precision) const override { return cpu_->Computes(precision); }
  Throughput throughput(Precision precision) const override { return cpu_->throughput(precision); }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return cpu_->Allocate(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return cpu_->Prepare(kernel, weight, problem);
  }
  Status health() const override { return absl::OkStatus(); }
  AlgorithmChoices& algorithm_choices() override { return choices; }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }
  StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) override {
    return std::get<HostBackend*>(cpu_->kind())->NewHostStream(threads);
  }

  AlgorithmChoices choices;

 private:
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
};

class PlanTunerTest : public ::testing::Test {
 protected:
  TunablePlan Make() {
    auto made = MakeTunablePlan(network_, *backend_, options_);
    EXPECT_THAT(made.status(), IsOk());
    return *std::move(made);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  const Network network_ = MakeRandomNetwork({.sparsity = 0.8});
  TuningCache cache_{"", *backend_};
  PlanOptions options_{.max_batch = 8, .threads = 1, .make_watch = nullptr, .tuning_cache = &cache_};
};

TEST_F(PlanTunerTest, TheFirstPlanMeasuresNothing) {
  const TunablePlan made = Make();
  const PlanReport& report = made.plan->report();
  EXPECT_EQ(report.timed_now, 0);
  EXPECT_GT(report.untimed, 0);
  for (const LayerReport& layer : report.layers) {
    for (const auto& candidate : layer.candidates) EXPECT_FALSE(candidate.measured);
  }
  EXPECT_NE(made.tuner, nullptr);
}

TEST_F(PlanTunerTest, WhatIsMeasuredIsComplete) {
  const TunablePlan made = Make();
  const auto tuned = made.tuner->Tune(MeasureGate::Open(), absl::Seconds(20));
  ASSERT_THAT(tuned.status(), IsOk());
  EXPECT_GT(tuned->timed_now, 0);
  EXPECT_TRUE(tuned->complete());
  const auto again = made.tuner->Tune(MeasureGate::Open(), absl::Seconds(20));
  ASSERT_THAT(again.status(), IsOk());
  EXPECT_EQ(again->timed_now, 0);
}

TEST_F(PlanTunerTest, NothingIsLeftToTuneWhereAllIsKnown) {
  ASSERT_THAT(Make().tuner->Tune(MeasureGate::Open(), absl::Seconds(20)).status(), IsOk());
  // The plan that is chosen now may run other steps, whose times aren't known yet; the one after that is known.
  for (TunablePlan next = Make(); next.tuner != nullptr; next = Make()) {
    ASSERT_THAT(next.tuner->Tune(MeasureGate::Open(), absl::Seconds(20)).status(), IsOk());
  }
  const TunablePlan known = Make();
  EXPECT_EQ(known.tuner, nullptr);
  EXPECT_EQ(known.plan->report().untimed, 0);
}

TEST_F(PlanTunerTest, KeepsItsBudgetOfTheGatesTime) {
  const TunablePlan made = Make();
  TickingGate gate(absl::Milliseconds(1));
  const absl::Duration budget = absl::Milliseconds(300);
  const auto tuned = made.tuner->Tune(gate, budget);
  ASSERT_THAT(tuned.status(), IsOk());
  EXPECT_GT(tuned->timed_now, 0);
  EXPECT_GT(tuned->untimed, 0) << "there is time for a few layers";
  EXPECT_LT(gate.now(), 2 * budget) << "a share is passed by the least runs of one layer at most";
}

TEST_F(PlanTunerTest, SuspectTimesChooseNothing) {
  const TunablePlan made = Make();
  TickingGate gate(absl::Microseconds(20));
  gate.disturbed = true;
  const auto tuned = made.tuner->Tune(gate, absl::Milliseconds(500));
  ASSERT_THAT(tuned.status(), IsOk());
  EXPECT_EQ(tuned->better, nullptr);
  EXPECT_GT(tuned->suspect, 0);
  EXPECT_FALSE(tuned->complete());
  const PlanReport next = Make().plan->report();
  EXPECT_GT(next.suspect, 0) << "the cache says so, too";
  for (const LayerReport& layer : next.layers) {
    for (const auto& candidate : layer.candidates) EXPECT_FALSE(candidate.measured);
  }
}

TEST_F(PlanTunerTest, IsCancelledByTheGate) {
  const TunablePlan made = Make();
  TickingGate gate(absl::ZeroDuration());
  gate.cancelled = true;
  EXPECT_TRUE(absl::IsCancelled(made.tuner->Tune(gate, absl::Seconds(1)).status()));
}

// Kernels choose while they are measured; none is measured here, so that what was chosen is all that is new.
TEST_F(PlanTunerTest, APlanIsRecordedAgainWithAlgorithmsThatWereChosen) {
  class Gate final : public MeasureGate {
   public:
    Gate(AlgorithmChoices& choices, int algorithm) : choices_(choices), algorithm_(algorithm) {}
    bool MustWait() override { return false; }
    Status Await() override { return absl::OkStatus(); }
    int64_t disturbances() const override { return 0; }
    absl::Duration Spent() override {
      if (++looks_ > 1) choices_.Add("a product", {algorithm_, 1.0});
      return absl::Hours(looks_);
    }

   private:
    AlgorithmChoices& choices_;
    const int algorithm_;
    int64_t looks_ = 0;
  };
  for (const int algorithm : {0, 3}) {
    ChoosingBackend backend;
    options_.tuning_cache = nullptr;  // would tell the second of the first
    PlanMaterials materials(network_);
    materials.leaves_blueprint = true;
    const auto made = MakeTunablePlan(std::move(materials), backend, options_);
    ASSERT_THAT(made.status(), IsOk());
    Gate gate(backend.choices, algorithm);
    const auto tuned = made->tuner->Tune(gate, absl::Milliseconds(1));
    ASSERT_THAT(tuned.status(), IsOk());
    EXPECT_EQ(tuned->timed_now, 0);
    EXPECT_EQ(tuned->better, algorithm == 0 ? nullptr : made->plan) << "0 is what is taken without a choice";
    EXPECT_EQ(tuned->blueprint != nullptr, algorithm != 0);
  }
}

TEST_F(PlanTunerTest, PlansOfKnownTimesTakeTheAlgorithmsThatTheyWereMeasuredWith) {
  ChoosingBackend before, after;
  before.choices.Add("a product", {3, 1.0});
  ASSERT_THAT(MakeTunablePlan(network_, before, options_).status(), IsOk());
  ASSERT_THAT(MakeTunablePlan(network_, after, options_).status(), IsOk());
  EXPECT_EQ(after.choices.All(), before.choices.All());
}

// Plans of the same materials share what they have in common, and compute the same.
TEST_F(PlanTunerTest, PlansOfOneNetworkComputeTheSame) {
  PlanMaterials materials(network_);
  materials.keep = true;
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const bool dense_only : {false, true, false}) {
    PlanOptions options = options_;
    options.dense_only = dense_only;
    options.tuning_budget = absl::ZeroDuration();
    auto plan = MakePlan(materials, *backend_, options);
    ASSERT_THAT(plan.status(), IsOk());
    plans.push_back(*std::move(plan));
  }
  EXPECT_FALSE(materials.network.weights.empty());
  const auto input = testing::DrawFloats(static_cast<size_t>(2 * network_.values[0].elements()), 3);
  std::vector<std::vector<float>> outputs;
  for (const auto& plan : plans) {
    const auto runner = plan->NewRunner({});
    ASSERT_THAT(runner.status(), IsOk());
    outputs.push_back(testing::RunImages(**runner, 2, input));
  }
  EXPECT_EQ(outputs[0], outputs[2]);
  testing::ExpectClose(outputs[1], outputs[0], 1e-4f);
}

}  // namespace
}  // namespace swizzle
