// Plans in which one kernel computes a linear layer and its norm, on a device that has such a row.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "tests/kernels/fake_device.h"
#include "tests/support/cached_times.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_encoder.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::Batch;
using testing::ExpectClose;
using testing::MustPlan;
using testing::RunSequences;

constexpr std::string_view kPairRow = "norm_of_product";

class WholeWeight final : public PackedWeight {
 public:
  explicit WholeWeight(Weight weight) : weight_(std::move(weight)) {}
  size_t bytes() const override { return weight_.StoredBytes(); }
  const Weight& weight() const { return weight_; }

 private:
  const Weight weight_;
};

void RunOnHost(const KernelArgs& args, Stream&) {
  const Problem& problem = *args.problem;
  const auto values = [&](size_t i, const Extent& extent) {
    return reference::Values(args.Input<float>(i), args.Input<float>(i) + extent.batch * extent.channels);
  };
  const reference::Result result =
      reference::Solve(problem, &static_cast<const WholeWeight&>(*args.weight).weight(),
                       {values(0, problem.input), values(1, problem.output)}, args.sequences);
  std::ranges::copy(result, args.Output<float>());
}

Kernel PairRow() {
  Kernel row;
  row.name = kPairRow;
  const Storage tokens = {Layout::kNchw, DType::kFloat32};
  row.key = {Op::kLayerNorm, Format::kCsr, DType::kFloat32, tokens, tokens};
  row.accepts = [](const Problem& problem) { return problem.epilogue.residual; };
  row.prepare = [](const Weight& weight, const Problem&) -> StatusOr<std::unique_ptr<PackedWeight>> {
    return std::make_unique<WholeWeight>(weight);
  };
  row.run = [](const KernelArgs& args, Stream& stream) {
    Kernel host;
    host.run = RunOnHost;
    static_cast<FakeDeviceStream&>(stream).QueueRow(host, args);
  };
  return row;
}

class NormPairsPlanTest : public ::testing::Test {
 protected:
  NormPairsPlanTest() { device_.AddRow(PairRow()); }

  std::shared_ptr<const Plan> MeasuredPlan(TuningCache* cache) {
    PlanOptions options;
    options.max_tokens = 512;
    options.tuning_budget = absl::Seconds(60);
    options.tuning_cache = cache;
    options.weight_budget = 3.0;
    auto plan = MakePlan(network_, device_, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : nullptr;
  }

  // Of each range of sizes, how many layers of this kind run on the row.
  static std::vector<int64_t> OnRow(const PlanReport& report, std::string_view op) {
    std::vector<int64_t> counts(report.buckets.size());
    for (const LayerReport& layer : report.layers) {
      for (size_t b = 0; b < counts.size(); ++b) counts[b] += layer.op == op && layer.kernels[b] == kPairRow;
    }
    return counts;
  }

  void ExpectRightResults(const Plan& plan) {
    const auto expected = MustPlan(network_, *cpu_);
    ASSERT_NE(expected, nullptr);
    auto runner = *plan.NewRunner({}), expected_runner = *expected->NewRunner({});
    for (const std::vector<int32_t>& lengths : std::vector<std::vector<int32_t>>{{1}, {7}, {70, 3, 1, 66}, {60, 60}}) {
      SCOPED_TRACE(lengths[0]);
      const Batch batch(lengths, false);
      for (int run = 0; run < 2; ++run) {  // the second is a replay
        const auto actual = RunSequences(*runner, batch), right = RunSequences(*expected_runner, batch);
        for (size_t i = 0; i < right.size(); ++i) ExpectClose(actual[i], right[i], 1e-4f);
      }
    }
  }

  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
  FakeDevice device_;
  const Network network_ = testing::MakeRandomEncoder({.channels = 64});
};

// Every kernel takes a microsecond there.
TEST_F(NormPairsPlanTest, OneKernelIsTakenForTwo) {
  const auto plan = MeasuredPlan(nullptr);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(OnRow(plan->report(), "Conv"), std::vector<int64_t>(plan->report().buckets.size(), 2));
  EXPECT_EQ(OnRow(plan->report(), "LayerNorm"), std::vector<int64_t>(plan->report().buckets.size(), 2));
  ExpectRightResults(*plan);
}

TEST_F(NormPairsPlanTest, EachSizeTakesWhatIsFasterThere) {
  const TemporaryFolder folder;
  const std::filesystem::path times = folder.path() / "times";
  {
    TuningCache cache(times, device_);
    ASSERT_NE(MeasuredPlan(&cache), nullptr);
    ASSERT_TRUE(cache.Save().ok());
  }
  testing::ChangeCachedTimes(times, [](nlohmann::json& record) {
    const bool few = record.value("problem", "").find("-> 64x") != std::string::npos;
    if (record.value("kernel", "") == kPairRow && few) record["microseconds"] = 50.0;
  });
  TuningCache cache(times, device_);
  const auto plan = MeasuredPlan(&cache);
  ASSERT_NE(plan, nullptr);
  const std::vector<int64_t> products = OnRow(plan->report(), "Conv"), norms = OnRow(plan->report(), "LayerNorm");
  ASSERT_GT(products.size(), 1u);
  EXPECT_EQ(products.front(), 0);
  EXPECT_EQ(products.back(), 2);
  EXPECT_EQ(norms, products);
  ExpectRightResults(*plan);
}

TEST_F(NormPairsPlanTest, DensePlansTakeNone) {
  PlanOptions options;
  options.max_tokens = 512;
  options.dense_only = true;
  const auto plan = MakePlan(network_, device_, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(OnRow((*plan)->report(), "Conv").front(), 0);
}

}  // namespace
}  // namespace swizzle
