// Kernels that skip zeros of their input in plans: chosen where calibration data told of the zeros, and times measured
// with such say that they are fastest. The machine's own kernels, one of them once more as a row that skips zeros, with
// times that the tuning cache says.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/plan_tuner.h"
#include "model_loader/plan/planner.h"
#include "tests/kernels/fake_backend.h"
#include "tests/support/known_times.h"
#include "tests/support/network_builder.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

constexpr char kSkipping[] = "skips_zeros";
constexpr InputZeros kMany = {0.5, 0.6, 0.8, 0.9};

// Two convolutions, of which the second may read zeros.
Network TwoConvolutions() {
  testing::NetworkBuilder b(7, 0);
  const int x = b.Value("x", 32, 7, 7);
  const int a = b.Conv(x, 48, testing::SquareWindow(1, 1, 0), 0.75, testing::kRelu);
  const int y = b.Conv(a, 64, testing::SquareWindow(1, 1, 0), 0.75, testing::kNoEpilogue);
  const NetworkPort input = b.Port(x, "x"), output = b.Port(y, "y");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  return network;
}

// A kernel for sparse weights once more.
std::vector<Kernel> WithSkippingRow(const Backend& cpu) {
  const Network network = TwoConvolutions();
  const Problem problem = LayerProblem(network, network.layers[1], 1, 1);
  const auto fitting = Candidates(cpu, problem, &network.weights[1], Precision::kFloat32);
  const auto sparse = std::ranges::find_if(fitting, [](const Kernel* kernel) { return IsSparse(kernel->key.weights); });
  SWIZZLE_CHECK(sparse != fitting.end());
  Kernel skipping = SkippingInputZeros(**sparse);
  skipping.name = kSkipping;
  skipping.family = {};
  std::vector<Kernel> rows(cpu.kernels().begin(), cpu.kernels().end());
  rows.push_back(skipping);
  return rows;
}

class InputZerosPlanTest : public ::testing::Test {
 protected:
  InputZerosPlanTest() { network_.values[network_.layers[1].inputs[0]].zeros = kMany; }

  // As if the skipping row took so long, and others 100 us.
  void KnowTimes(double skipping) {
    testing::KnowTimes(network_, backend_, options_,
                       [=](const Kernel& kernel) { return kernel.name == kSkipping ? skipping : 100.0; });
  }
  std::shared_ptr<const Plan> Make() {
    auto plan = MakePlan(network_, backend_, options_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *plan;
  }
  static bool Has(const LayerReport& layer) {
    return std::ranges::any_of(layer.candidates, [](const auto& of) { return of.kernel == kSkipping; });
  }

  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
  const std::vector<Kernel> rows_ = WithSkippingRow(*cpu_);
  FakeBackend backend_{rows_, cpu_->features()};
  Network network_ = TwoConvolutions();
  TuningCache cache_{"", backend_};
  PlanOptions options_{.max_batch = 8,
                       .measured_batches = {1, 8},
                       .threads = 1,
                       .tuning_budget = absl::ZeroDuration(),
                       .make_watch = nullptr,
                       .tuning_cache = &cache_};
};

TEST_F(InputZerosPlanTest, AreSkippedWhereThatIsFastest) {
  KnowTimes(10.0);
  const auto plan = Make();
  const auto& layers = plan->report().layers;
  EXPECT_EQ(layers[1].kernels, std::vector<std::string>{kSkipping});
  EXPECT_TRUE(layers[1].SkipsInputZeros());
  EXPECT_FALSE(Has(layers[0])) << "nothing is known of its input";
  EXPECT_FALSE(layers[0].SkipsInputZeros());
  const auto input = testing::DrawFloats(static_cast<size_t>(3 * network_.values[0].elements()), 5);
  auto runner = *plan->NewRunner({});
  testing::ExpectClose(testing::RunImages(*runner, 3, input), testing::EvaluateNetwork(network_, {input}, 3)[0], 1e-4f);
}

TEST_F(InputZerosPlanTest, AreNotSkippedWhereOthersAreFaster) {
  KnowTimes(200.0);
  const auto plan = Make();
  EXPECT_TRUE(Has(plan->report().layers[1])) << "it was measured";
  EXPECT_FALSE(plan->report().layers[1].SkipsInputZeros());
}

TEST_F(InputZerosPlanTest, AreNotSkippedByEstimate) {
  const auto plan = Make();
  EXPECT_GT(plan->report().untimed, 0);
  EXPECT_FALSE(Has(plan->report().layers[1]));
}

TEST_F(InputZerosPlanTest, AreNotSkippedWithoutCalibration) {
  KnowTimes(10.0);
  for (NetworkValue& value : network_.values) value.zeros.reset();
  const auto plan = Make();
  for (const LayerReport& layer : plan->report().layers) EXPECT_FALSE(Has(layer)) << layer.name;
}

// Times with other zeros are those of another problem.
TEST_F(InputZerosPlanTest, TimesWithOtherZerosDoNotCount) {
  KnowTimes(10.0);
  network_.values[network_.layers[1].inputs[0]].zeros = InputZeros{0.5, 0.6, 0.8, 0.95};
  EXPECT_FALSE(Has(Make()->report().layers[1]));
}

// Both rows are one kernel here, so that no race would find the plan that skips zeros faster than another.
TEST_F(InputZerosPlanTest, TunersGoByTheTimesOfLayers) {
  auto tunable = MakeTunablePlan(network_, backend_, options_);
  ASSERT_TRUE(tunable.ok()) << tunable.status();
  ASSERT_NE(tunable->tuner, nullptr);
  KnowTimes(1e-3);
  std::shared_ptr<const Plan> better;
  for (int pass = 0; pass < 3 && better == nullptr; ++pass) {
    auto tuned = tunable->tuner->Tune(MeasureGate::Open(), absl::Seconds(20));
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    better = tuned->better;
  }
  ASSERT_NE(better, nullptr);
  EXPECT_TRUE(better->report().layers[1].SkipsInputZeros());
}

}  // namespace
}  // namespace swizzle
