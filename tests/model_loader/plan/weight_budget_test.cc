// What a plan may hold of weights: with a budget of more than one form a layer, small and large batches run on kernels
// of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "tests/support/cached_times.h"
#include "tests/support/fake_device.h"
#include "tests/support/network_builder.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::DrawFloats;
using testing::EvaluateNetwork;
using testing::ExpectClose;
using testing::RunImages;

// Rewrites times of a tuning cache: dense kernels are fast for one row, sparse ones for more.
void FavourDenseForOneRow(const std::filesystem::path& file) {
  testing::ChangeCachedTimes(file, [](nlohmann::json& record) {
    const bool one_row = record.value("problem", "").find("-> 1x") != std::string::npos;
    const std::string kernel = record.value("kernel", "");
    if (kernel.find("_dense_") != std::string::npos) record["microseconds"] = one_row ? 10.0 : 1e4;
    if (kernel.find("_csr_") != std::string::npos) record["microseconds"] = one_row ? 60.0 : 100.0;
  });
}

// A third kernel for all sizes, which one of the others beats at each.
void SetThirdKernel(const std::filesystem::path& file, double one_row, double more) {
  testing::ChangeCachedTimes(file, [=](nlohmann::json& record) {
    const bool is_one = record.value("problem", "").find("-> 1x") != std::string::npos;
    const std::string kernel = record.value("kernel", "");
    if (kernel.find("_csr_") != std::string::npos) record["microseconds"] = is_one ? 35.0 : 100.0;
    if (kernel.find("_onednn") != std::string::npos) record["microseconds"] = is_one ? one_row : more;
  });
}

// Sparse forms take half of what dense ones do; the small ones fit in a quarter of all.
Network LargeAndSmallLayers() {
  testing::NetworkBuilder b(7, 0);
  const int x = b.Value("x", 64, 7, 7);
  int y = x;
  for (const int64_t channels : {64, 16, 64, 64})
    y = b.Conv(y, channels, testing::SquareWindow(1, 1, 0), 0.75, testing::kRelu);
  const NetworkPort input = b.Port(x, "x"), output = b.Port(y, "y");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  return network;
}

// Plans of one network for which the cache says so.
class WeightBudgetTest : public ::testing::Test {
 protected:
  WeightBudgetTest() {
    // An output from before the last layers: without a tail, nothing else has to be alike.
    const NetworkValue& first = network_.values[network_.layers[0].output];
    network_.outputs.push_back(
        {"first", DType::kFloat32, {first.channels, first.height, first.width}, network_.layers[0].output});
    // Each time more kernels are no longer hopeless by their time for one row, and measured; at all of a device's
    // sizes.
    for (int i = 0; i < 3; ++i) {
      PlanFor(*cpu_, 1.0, absl::Seconds(2), {1, 2, 4, 8});
      FavourDenseForOneRow(times_);
    }
  }

  std::shared_ptr<const Plan> PlanFor(Backend& backend, double weight_budget, absl::Duration tuning = {},
                                      std::vector<int64_t> measured_batches = {}) {
    TuningCache cache(times_, *cpu_);
    auto plan = MakePlan(network_, backend,
                         {.max_batch = 8,
                          .measured_batches = std::move(measured_batches),
                          .threads = 1,
                          .tuning_budget = tuning,
                          .make_watch = nullptr,
                          .tuning_cache = &cache,
                          .weight_budget = weight_budget,
                          .micro_batch = 8});
    EXPECT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(cache.Save().ok());
    return plan.ok() ? *plan : nullptr;
  }
  int64_t BytesFor(Backend& backend, double weight_budget) {
    const auto plan = PlanFor(backend, weight_budget);
    return plan == nullptr ? 0 : plan->report().device_bytes;
  }

  Network network_ = LargeAndSmallLayers();
  const TemporaryFolder folder_;
  const std::filesystem::path times_ = folder_ / "times";
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
};

TEST_F(WeightBudgetTest, SmallAndLargeBatchesRunOnTheirOwnKernelsWhereMemoryAllows) {
  const auto plan = PlanFor(*cpu_, 100.0);
  ASSERT_NE(plan, nullptr);
  ASSERT_EQ(plan->report().buckets, (std::vector<int64_t>{2, 8}));
  const LayerReport& layer = plan->report().layers[1];
  EXPECT_NE(layer.KernelAt(0).find("_dense_"), std::string::npos) << layer.KernelAt(0);
  EXPECT_NE(layer.KernelAt(1).find("_csr_"), std::string::npos) << layer.KernelAt(1);
  const auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  for (int64_t batch : {1, 8, 2, 3, 1}) {
    SCOPED_TRACE(batch);
    const auto input = DrawFloats(static_cast<size_t>(batch * network_.values[0].elements()), 13);
    ExpectClose(RunImages(**runner, batch, input), EvaluateNetwork(network_, {input}, batch)[0], 1e-4f);
  }
}

// The form that all sizes have in common is held until each has its own. BERT-base held 608 MB of dense weights that
// no batch read.
TEST_F(WeightBudgetTest, FormsThatNoSizeReadsAreNotHeld) {
  SetThirdKernel(times_, 15.0, 120.0);
  const auto alone = PlanFor(*cpu_, 1.0), with_others = PlanFor(*cpu_, 100.0);
  SetThirdKernel(times_, 1e5, 1e6);
  const auto without = PlanFor(*cpu_, 100.0);
  ASSERT_TRUE(alone != nullptr && with_others != nullptr && without != nullptr);
  const auto is_third = [](const std::string& kernel) { return kernel.find("_onednn") != std::string::npos; };
  const auto& candidates = alone->report().layers[1].candidates;
  if (std::ranges::none_of(candidates, is_third, &LayerReport::KernelTimes::kernel)) {
    GTEST_SKIP() << "oneDNN has no row for this layer on processors without AVX-512";
  }
  const auto uses_third = [&](const std::shared_ptr<const Plan>& plan) {
    return std::ranges::any_of(plan->report().layers[1].kernels, is_third);
  };
  ASSERT_TRUE(uses_third(alone));
  ASSERT_FALSE(uses_third(with_others));
  EXPECT_EQ(with_others->report().layers[1].device_bytes, without->report().layers[1].device_bytes);
  EXPECT_LE(with_others->report().device_bytes, without->report().device_bytes);
}

TEST_F(WeightBudgetTest, TheHostUsuallyHasOneFormOfEachLayer) {
  const int64_t once = BytesFor(*cpu_, 1.0);
  EXPECT_EQ(BytesFor(*cpu_, 0.0), once);
  EXPECT_GT(BytesFor(*cpu_, 100.0), once);
}

TEST_F(WeightBudgetTest, DevicesUsuallyHaveAQuarterMore) {
  testing::FakeDevice device(int64_t{1} << 40, 0);
  const int64_t once = BytesFor(device, 1.0), usual = BytesFor(device, 0.0);
  EXPECT_EQ(usual, BytesFor(device, 1.25));
  EXPECT_GT(usual, once);
  EXPECT_LT(usual, BytesFor(device, 100.0));
}

}  // namespace
}  // namespace swizzle
