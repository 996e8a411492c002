// Plans that take each other's place while a model serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/plan/planner.h"
#include "server/model/derived_spec.h"
#include "server/model/served_model.h"
#include "tests/server/model/sum_plan.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

struct Input {
  Shape shape;
  std::vector<float> values;
};

// The first output of a batch of one request.
std::vector<float> RunOne(Session& session, const std::vector<Input>& inputs) {
  std::vector<TensorView> views;
  for (const Input& input : inputs) {
    views.push_back({DType::kFloat32, input.shape, std::as_bytes(std::span(input.values))});
  }
  std::vector<std::string> outputs;
  std::vector<Shape> shapes;
  std::vector<BatchItem> batch = {{views, inputs[0].shape[0], &outputs, &shapes}};
  BatchTimes times;
  EXPECT_TRUE(session.Run(batch, times).ok());
  const float* const floats = reinterpret_cast<const float*>(outputs[0].data());
  return {floats, floats + outputs[0].size() / sizeof(float)};
}

std::shared_ptr<ServedModel> NewModel(std::shared_ptr<const Plan> plan, int64_t max_batch_size) {
  ModelSpec spec = *DeriveSpec(InterfaceOf(plan->network()));
  spec.name = "replaced";
  spec.max_batch_size = max_batch_size;
  auto model = NewServedModel(std::move(spec), {std::move(plan)});
  SWIZZLE_CHECK(model.ok());
  return *std::move(model);
}

TEST(PlanReplacementTest, ANewPlanRunsFromTheNextBatchOn) {
  const auto first = std::make_shared<SumPlan>(0, 8), second = std::make_shared<SumPlan>(0, 8, 1);
  const auto model = NewModel(first, 8);
  const auto session = *model->NewSession(Clock::Real());
  const std::vector<Input> inputs = {{{2, 2}, {3, 4, 5, 6}}, {{2, 1}, {20, 30}}};
  EXPECT_THAT(RunOne(*session, inputs), ElementsAre(23, 24, 35, 36));
  EXPECT_EQ(model->facts()->properties.at("swizzle_micro_batch"), "8");
  ASSERT_TRUE(model->Replace(0, second).ok());
  EXPECT_THAT(RunOne(*session, inputs), ElementsAre(23, 24, 35, 36));
  EXPECT_EQ(model->facts()->properties.at("swizzle_micro_batch"), "1");
  EXPECT_THAT(first->log.runs, ElementsAre(2));
  EXPECT_THAT(second->log.runs, ElementsAre(1, 1));
  EXPECT_EQ(first.use_count(), 1) << "nothing of the model holds it any more";
}

TEST(PlanReplacementTest, SessionsGoOnWhereARunnerCannotBeHad) {
  class NoRunners final : public testing::FakePlan {
   public:
    NoRunners() : FakePlan(SumNetwork(0), 8) {}
    StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override {
      return MakeError(StatusCode::kResourceExhausted, "no memory");
    }
  };
  const auto model = NewModel(std::make_shared<SumPlan>(0, 8), 8);
  const auto session = *model->NewSession(Clock::Real());
  EXPECT_EQ(model->Replace(0, std::make_shared<NoRunners>()).code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(RunOne(*session, {{{1, 2}, {1, 2}}, {{1, 1}, {10}}}), ElementsAre(11, 12));
}

// Real plans, that compute in other ways, come and go under two executors that never stop.
TEST(PlanReplacementTest, NoBatchIsLostOrWrongWhilePlansAreReplaced) {
  const Network network = testing::MakeRandomNetwork({.sparsity = 0.8});
  const auto backend = NewCpuBackend();
  PlanMaterials materials(network);
  materials.keep = true;
  std::vector<std::shared_ptr<const Plan>> plans;
  for (const bool dense_only : {false, true}) {
    auto plan =
        MakePlan(materials, *backend,
                 {.max_batch = 4, .threads = 1, .dense_only = dense_only, .tuning_budget = absl::ZeroDuration()});
    ASSERT_TRUE(plan.ok()) << plan.status();
    plans.push_back(*std::move(plan));
  }
  const auto model = NewModel(plans[0], 4);
  Input image = {network.inputs[0].dims, testing::DrawFloats(static_cast<size_t>(network.values[0].elements()), 5)};
  image.shape.insert(image.shape.begin(), 1);
  const std::vector<float> expected = RunOne(**model->NewSession(Clock::Real()), {image});
  std::atomic<bool> stop = false;
  std::atomic<int> runs = 0;
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<std::thread> executors;
  for (int i = 0; i < 2; ++i) sessions.push_back(*model->NewSession(Clock::Real()));
  for (const auto& session : sessions) {
    executors.emplace_back([&] {
      while (!stop) {
        testing::ExpectClose(RunOne(*session, {image}), expected, 1e-4f);
        ++runs;
      }
    });
  }
  for (int i = 1; i <= 20; ++i) {
    const int before = runs;
    EXPECT_TRUE(model->Replace(0, plans[i % 2]).ok());
    while (runs < before + 3) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& executor : executors) executor.join();
}

}  // namespace
}  // namespace swizzle
