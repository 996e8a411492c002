#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "tests/support/cached_times.h"
#include "tests/support/network_builder.h"
#include "tests/support/network_reference.h"
#include "tests/support/plan_runs.h"
#include "tests/support/process_limits.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::DrawFloats;
using testing::EvaluateNetwork;
using testing::ExpectClose;
using testing::MakeRandomNetwork;
using testing::RunImages;

constexpr float kTolerance = 1e-4f;

PlanOptions FastOptions(int threads = 1) {
  PlanOptions options;
  options.threads = threads;
  options.tuning_budget = absl::Milliseconds(1);
  return options;
}

std::shared_ptr<const Plan> MustPlan(Network network, Backend& backend, const PlanOptions& options) {
  auto plan = MakePlan(std::move(network), backend, options);
  if (!plan.ok()) ADD_FAILURE() << plan.status();
  return plan.ok() ? *plan : nullptr;
}

struct Case {
  double sparsity;
  int threads;
  int64_t image;
};

class PlanParityTest : public ::testing::TestWithParam<Case> {};

TEST_P(PlanParityTest, EqualsTheReferenceAtEveryBatchSize) {
  const Network network = MakeRandomNetwork({.sparsity = GetParam().sparsity, .image = GetParam().image});
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(network, *backend, FastOptions(GetParam().threads));
  ASSERT_NE(plan, nullptr);
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  // Out of order, so that nothing left by a larger batch may leak into a smaller one.
  for (int64_t batch : {3, 64, 1, 17, 2}) {
    SCOPED_TRACE(batch);
    const auto input = DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 11);
    ExpectClose(RunImages(**runner, batch, input), EvaluateNetwork(network, {input}, batch)[0], kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PlanParityTest,
                         ::testing::Values(Case{0.9, 1, 14}, Case{0.9, 2, 14}, Case{0.0, 2, 14}, Case{0.5, 1, 9},
                                           Case{0.98, 2, 33}));

TEST(PlanTest, AFixedBatchIsTheOnlyOne) {
  const Network network = MakeRandomNetwork({.batch_size = 5});
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(network, *backend, FastOptions());
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->max_batch(), 5);
  EXPECT_EQ(plan->report().measured_batches, (std::vector<int64_t>{5}));
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  const auto input = DrawFloats(static_cast<size_t>(5 * network.values[0].elements()), 3);
  ExpectClose(RunImages(**runner, 5, input), EvaluateNetwork(network, {input}, 5)[0], kTolerance);
}

TEST(PlanTest, OneExecutorPerThreadSharesThePlan) {
  const Network network = MakeRandomNetwork({});
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(network, *backend, FastOptions());
  ASSERT_NE(plan, nullptr);
  const auto input = DrawFloats(static_cast<size_t>(4 * network.values[0].elements()), 5);
  const auto expected = EvaluateNetwork(network, {input}, 4)[0];
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      auto runner = plan->NewRunner({});
      ASSERT_TRUE(runner.ok());
      for (int i = 0; i < 5; ++i) ExpectClose(RunImages(**runner, 4, input), expected, kTolerance);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(PlanTest, AnOutputMayAlsoBeReadByLaterLayers) {
  Network network = MakeRandomNetwork({});
  const Layer& stem = network.layers[0];
  const NetworkValue& v = network.values[stem.output];
  network.outputs.push_back({"stem", DType::kFloat32, {v.channels, v.height, v.width}, stem.output});
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(network, *backend, FastOptions());
  ASSERT_NE(plan, nullptr);
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  const auto input = DrawFloats(static_cast<size_t>(2 * network.values[0].elements()), 5);
  ExpectClose(RunImages(**runner, 2, input), EvaluateNetwork(network, {input}, 2)[0], kTolerance);
  const auto actual = (*runner)->Output(1, 2);
  const auto expected = reference::Solve(LayerProblem(network, stem, 2, 1), &network.weights[stem.weight], {input});
  ExpectClose({actual.begin(), actual.end()}, {expected.begin(), expected.end()}, kTolerance);
}

// What a batch leaves as outputs, computed in parts of these rows.
std::vector<float> RunInParts(const Plan& plan, Runner& runner, std::vector<int64_t> parts,
                              std::span<const float> input) {
  const int64_t rows = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  std::vector<float> outputs;
  int64_t first = 0;
  for (const int64_t part : parts) {
    const std::span<float> to = runner.Input(0, part);
    std::ranges::copy(input.subspan(first * input.size() / rows, to.size()), to.begin());
    EXPECT_TRUE(runner.RunPart({first, part, rows}).ok());
    first += part;
    if (plan.has_tail() && first < rows) continue;
    const auto output = runner.Output(0, plan.has_tail() ? rows : part);
    outputs.insert(outputs.end(), output.begin(), output.end());
  }
  return outputs;
}

TEST(PlanTest, ABatchInPartsIsTheSame) {
  const auto backend = NewCpuBackend();
  for (const bool tail : {true, false}) {
    SCOPED_TRACE(tail);
    Network network = MakeRandomNetwork({});
    if (!tail) {  // an output from before the last layers
      const NetworkValue& v = network.values[network.layers[0].output];
      network.outputs.push_back({"stem", DType::kFloat32, {v.channels, v.height, v.width}, network.layers[0].output});
    }
    const auto input = DrawFloats(static_cast<size_t>(7 * network.values[0].elements()), 7);
    const auto plan = MustPlan(network, *backend, FastOptions(2));
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(plan->has_tail(), tail);
    const std::unique_ptr<Runner> runner = *plan->NewRunner({});
    const std::vector<float> expected = EvaluateNetwork(network, {input}, 7)[0];
    for (const auto& parts : {std::vector<int64_t>{3, 4}, {1, 1, 1, 1, 1, 1, 1}, {7}, {6, 1}}) {
      ExpectClose(RunInParts(*plan, *runner, parts, input), expected, kTolerance);
    }
  }
}

// Rewrites the times of a tuning cache as if sparse kernels with the second blocking, and one thread, had taken none.
void FavourTheUnusual(const std::filesystem::path& file) {
  testing::ChangeCachedTimes(file, [](nlohmann::json& record) {
    const std::string problem = record.value("problem", "");
    if (record.value("kernel", "").find("_dense_") != std::string::npos) record["microseconds"] = 1e6;
    const bool serial = record.contains("step") && record["threads"] != "all";
    if (problem.ends_with("blocking 1") || serial) record["microseconds"] = 0.0;
  });
}

TEST(PlanTest, RunsInTheWaysThatWereFastestAndStaysTheSame) {
  const auto network = [] {
    testing::NetworkBuilder builder(5, 0);
    const int image = builder.Value("x", 512, 9, 9);
    const int first = builder.Conv(image, 64, testing::SquareWindow(1, 1, 0), 0.9, testing::kRelu);
    const int second = builder.Conv(first, 40, testing::SquareWindow(3, 1, 1), 0.8, testing::kRelu);
    const NetworkPort input = builder.Port(image, "x"), output = builder.Port(second, "y");
    Network built = builder.Finish();
    built.inputs = {input};
    built.outputs = {output};
    return built;
  };
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "times";
  const auto backend = NewCpuBackend();
  const auto plan = [&](absl::Duration budget) {
    TuningCache cache(file, *backend);
    auto made = MustPlan(
        network(), *backend,
        {.max_batch = 4, .threads = 2, .tuning_budget = budget, .make_watch = nullptr, .tuning_cache = &cache});
    EXPECT_TRUE(cache.Save().ok());
    return made;
  };
  // Each time another kernel, then another blocking, then other steps are found to be fast, and measured.
  for (int i = 0; i < 3; ++i) {
    plan(absl::Seconds(20));
    FavourTheUnusual(file);
  }
  const auto unusual = plan(absl::ZeroDuration());
  ASSERT_NE(unusual, nullptr);
  EXPECT_EQ(unusual->report().small_batch, 1);
  for (const LayerReport& layer : unusual->report().layers) {
    EXPECT_EQ(layer.blocking, "blocks of 2/3") << layer.kernels[0];
    EXPECT_TRUE(layer.serial);
  }
  auto runner = unusual->NewRunner({});
  ASSERT_TRUE(runner.ok());
  for (int64_t batch : {1, 4, 1}) {
    const auto input = DrawFloats(static_cast<size_t>(batch * network().values[0].elements()), 12);
    ExpectClose(RunImages(**runner, batch, input), EvaluateNetwork(network(), {input}, batch)[0], kTolerance);
  }
}

// Whose rows of middling length would be too many.
TEST(PlanTest, TimesAFixedBatchOfSequencesThatFit) {
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(testing::MakeRandomEncoder({.batch_size = 3}), *backend,
                             {.max_tokens = 64, .threads = 2, .tuning_budget = absl::Milliseconds(50)});
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->max_tokens(), 64);
}

TEST(PlanTest, ReportNamesTheChosenAndTheRejectedKernels) {
  const Network network = MakeRandomNetwork({});
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(network, *backend, FastOptions());
  ASSERT_NE(plan, nullptr);
  const PlanReport& report = plan->report();
  ASSERT_EQ(report.layers.size(), network.layers.size());
  EXPECT_EQ(report.measured_batches, (std::vector<int64_t>{1, 8}));
  EXPECT_EQ(report.dense_bytes, network.DenseWeightBytes());
  EXPECT_EQ(report.stored_bytes, network.StoredWeightBytes());
  EXPECT_GT(report.device_bytes, 0);
  const LayerReport& sparse = report.layers[1];
  EXPECT_NEAR(sparse.sparsity(), 0.9, 0.01);
  EXPECT_EQ(sparse.format, Format::kCsr);
  bool has_sparse = false, has_dense = false, has_chosen = false;
  for (const auto& candidate : sparse.candidates) {
    EXPECT_EQ(candidate.microseconds.size(), 2u);
    has_sparse |= candidate.kernel.find("csr") != std::string::npos;
    has_dense |= candidate.kernel.find("dense") != std::string::npos;
    has_chosen |= sparse.RunsOn(candidate.kernel);
  }
  EXPECT_TRUE(has_sparse && has_dense && has_chosen);
}

TEST(PlanTest, WithoutABudgetKernelsAreChosenByRuleOfThumb) {
  const Network network = MakeRandomNetwork({.sparsity = 0.95});
  const auto backend = NewCpuBackend();
  PlanOptions options = FastOptions();
  options.tuning_budget = absl::ZeroDuration();
  const auto plan = MustPlan(network, *backend, options);
  ASSERT_NE(plan, nullptr);
  for (const LayerReport& layer : plan->report().layers) {
    for (const auto& candidate : layer.candidates) {
      EXPECT_FALSE(candidate.measured);
      EXPECT_EQ(candidate.microseconds.size(), 2u);
    }
  }
  EXPECT_NE(plan->report().layers[1].kernels[0].find("csr"), std::string::npos) << plan->report().layers[1].kernels[0];
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  const auto input = DrawFloats(static_cast<size_t>(3 * network.values[0].elements()), 5);
  ExpectClose(RunImages(**runner, 3, input), EvaluateNetwork(network, {input}, 3)[0], kTolerance);
}

// Weights are prepared by several threads; who listens hears of one layer at a time.
TEST(PlanTest, TellsOfEachLayerThatIsPrepared) {
  const auto backend = NewCpuBackend();
  PlanOptions options = FastOptions();
  options.tuning_budget = absl::ZeroDuration();
  options.threads = 4;
  std::vector<int64_t> done;
  int64_t all = 0;
  options.progress = [&](const PlanProgress& progress) {
    EXPECT_EQ(progress.stage, PlanProgress::Stage::kPreparing);
    done.push_back(progress.done);
    all = progress.all;
  };
  ASSERT_NE(MustPlan(MakeRandomNetwork({}), *backend, options), nullptr);
  std::vector<int64_t> expected(static_cast<size_t>(all));
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_GT(all, 10);
  EXPECT_EQ(done, expected);
}

TEST(PlanTest, WeightsArePreparedByAsManyThreadsAsWereAskedFor) {
  const auto backend = NewCpuBackend();
  PlanOptions options = FastOptions();
  options.tuning_budget = absl::ZeroDuration();
  options.threads = 4;
  options.preparing_threads = 1;
  std::set<std::thread::id> preparing;
  options.progress = [&](const PlanProgress&) { preparing.insert(std::this_thread::get_id()); };
  ASSERT_NE(MustPlan(MakeRandomNetwork({}), *backend, options), nullptr);
  EXPECT_EQ(preparing, std::set{std::this_thread::get_id()});
}

bool start_no_more = false;
std::unique_ptr<NoMoreThreads> no_more_threads;

// Those that measure have started by then.
std::unique_ptr<MachineWatch> StartNoMore(const std::set<int>&) {
  if (std::exchange(start_no_more, false)) no_more_threads = std::make_unique<NoMoreThreads>();
  return nullptr;
}

TEST(PlanTest, PreparesWeightsWithTheThreadsThatThereAre) {
  const auto backend = NewCpuBackend();
  PlanOptions options = FastOptions(4);
  options.make_watch = &StartNoMore;
  start_no_more = true;
  std::set<std::thread::id> preparing;
  options.progress = [&](const PlanProgress& progress) {
    if (progress.stage != PlanProgress::Stage::kPreparing) return;
    preparing.insert(std::this_thread::get_id());
    if (progress.done == progress.all) no_more_threads = nullptr;
  };
  EXPECT_NE(MustPlan(MakeRandomNetwork({}), *backend, options), nullptr);
  EXPECT_EQ(no_more_threads, nullptr) << "not all layers were prepared";
  no_more_threads = nullptr;
  EXPECT_EQ(preparing, std::set{std::this_thread::get_id()});
}

TEST(PlanTest, SmallBatchesUseACompactArena) {
  const auto backend = NewCpuBackend();
  const auto plan = MustPlan(MakeRandomNetwork({}), *backend, FastOptions());
  ASSERT_NE(plan, nullptr);
  auto runner = plan->NewRunner({});
  ASSERT_TRUE(runner.ok());
  const float* const input = (*runner)->Input(0, 1).data();
  const float* const output = (*runner)->Output(0, 1).data();
  EXPECT_LT(std::abs(output - input), static_cast<std::ptrdiff_t>(plan->arena_bytes() / 8 / sizeof(float)));
}

TEST(PlanTest, RefusesABatchOfNothing) {
  const auto backend = NewCpuBackend();
  PlanOptions options = FastOptions();
  options.max_batch = 0;
  const auto plan = MakePlan(MakeRandomNetwork({}), *backend, options);
  EXPECT_EQ(plan.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace swizzle
