#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "kernels/cpu/runtime/available_cpus.h"
#include "server/model/derived_spec.h"
#include "server/model/model_facts.h"
#include "server/model/served_model.h"
#include "tests/server/model/sum_plan.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// One request: owns its inputs, and what the session fills in.
class Item {
 public:
  Item& Add(Shape shape, std::vector<float> values) {
    values_.push_back(std::move(values));
    shapes_.push_back(std::move(shape));
    return *this;
  }
  BatchItem Batched(int64_t rows) {
    for (size_t i = 0; i < values_.size(); ++i) {
      inputs_.push_back({DType::kFloat32, shapes_[i], std::as_bytes(std::span<const float>(values_[i]))});
    }
    return {inputs_, rows, &outputs_, &output_shapes_};
  }
  std::vector<float> output(size_t i) const {
    std::vector<float> floats(outputs_[i].size() / sizeof(float));
    std::memcpy(floats.data(), outputs_[i].data(), floats.size() * sizeof(float));
    return floats;
  }
  // After Batched.
  std::span<TensorView> inputs() { return inputs_; }
  // Overwrites the values that it owns.
  void Forget() {
    for (std::vector<float>& values : values_) std::ranges::fill(values, -1.0f);
  }
  size_t outputs() const { return outputs_.size(); }
  const Shape& shape(size_t i) const { return output_shapes_[i]; }

 private:
  std::vector<std::vector<float>> values_;
  std::vector<Shape> shapes_;
  std::vector<TensorView> inputs_;
  std::vector<std::string> outputs_;
  std::vector<Shape> output_shapes_;
};

ModelSpec SumSpec(int64_t batch_size = 0) {
  ModelSpec spec = *DeriveSpec(InterfaceOf(SumNetwork(batch_size)));
  spec.name = "sum";
  if (spec.max_batch_size > 0) spec.max_batch_size = 8;
  return spec;
}

std::unique_ptr<Session> NewSession(const std::shared_ptr<Model>& model) {
  StatusOr<std::unique_ptr<Session>> session = model->NewSession(Clock::Real());
  SWIZZLE_CHECK(session.ok());
  return *std::move(session);
}

std::shared_ptr<Model> NewModel(ModelSpec spec, std::shared_ptr<const Plan> plan) {
  auto model = NewServedModel(std::move(spec), {std::move(plan)});
  SWIZZLE_CHECK(model.ok());
  return *std::move(model);
}

std::string RefusalOfSum(const ModelSpec& spec, int64_t batch_size = 0) {
  const Status status = NewServedModel(spec, {std::make_shared<SumPlan>(batch_size, 8)}).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(PlannedWholeTest, GathersAndScattersABatch) {
  const auto model = NewModel(SumSpec(), std::make_shared<SumPlan>(0, 8));
  const auto session = NewSession(model);
  Item first, second;
  first.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
  second.Add({2, 2}, {3, 4, 5, 6}).Add({2, 1}, {20, 30});
  std::vector<BatchItem> batch = {first.Batched(1), second.Batched(2)};
  BatchTimes times;
  ASSERT_TRUE(session->Run(batch, times).ok());
  EXPECT_THAT(first.output(0), ElementsAre(11, 12));
  EXPECT_THAT(first.output(1), ElementsAre(20));
  EXPECT_THAT(second.output(0), ElementsAre(23, 24, 35, 36));
  EXPECT_THAT(second.output(1), ElementsAre(40, 60));
  EXPECT_THAT(first.shape(0), ElementsAre(1, 2));
  EXPECT_THAT(second.shape(0), ElementsAre(2, 2));
  EXPECT_THAT(second.shape(1), ElementsAre(2, 1));
}

class PlannedWholeRunsTest : public ::testing::TestWithParam<bool> {};  // whether the plan has a tail

TEST_P(PlannedWholeRunsTest, RunsALargeBatchInSeveralRuns) {
  const auto plan = std::make_shared<SumPlan>(0, 8, 3);
  plan->tail = GetParam();
  const auto model = NewModel(SumSpec(), plan);
  const auto session = NewSession(model);
  Item first, second;
  first.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
  second.Add({4, 2}, {3, 4, 5, 6, 7, 8, 9, 10}).Add({4, 1}, {20, 30, 40, 50});
  std::vector<BatchItem> batch = {first.Batched(1), second.Batched(4)};
  BatchTimes times;
  ASSERT_TRUE(session->Run(batch, times).ok());
  EXPECT_THAT(plan->log.runs, ElementsAre(2, 3));
  EXPECT_THAT(first.output(0), ElementsAre(11, 12));
  EXPECT_THAT(second.output(0), ElementsAre(23, 24, 35, 36, 47, 48, 59, 60));
  EXPECT_THAT(second.output(1), ElementsAre(40, 60, 80, 100));
  EXPECT_THAT(second.shape(0), ElementsAre(4, 2));
  EXPECT_GT(times.input, absl::ZeroDuration());
}

INSTANTIATE_TEST_SUITE_P(Tails, PlannedWholeRunsTest, ::testing::Bool());

// Runs it in a thread of its own, as executors do, and returns the processors that may use until the stream rests,
// which those of SumPlan never do.
std::vector<int> CpusOfARun(Session& session) {
  std::vector<int> cpus;
  std::thread([&] {
    Item item;
    item.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
    std::vector<BatchItem> batch = {item.Batched(1)};
    BatchTimes times;
    ASSERT_TRUE(session.Run(batch, times).ok());
    cpus = cpu::AffinityMaskOfThisThread();
  }).join();
  return cpus;
}

TEST(PlannedWholeTest, PinsThreadsWhereTheSpecificationSaysSo) {
  ModelSpec spec = SumSpec();
  const std::vector<int> all = cpu::AffinityMask();
  EXPECT_EQ(CpusOfARun(*NewSession(NewModel(spec, std::make_shared<SumPlan>(0, 8)))), all);
  spec.pin_threads = true;
  const auto model = NewModel(spec, std::make_shared<SumPlan>(0, 8));
  const auto first = NewSession(model), second = NewSession(model);
  EXPECT_THAT(CpusOfARun(*first), ElementsAre(all[0]));
  EXPECT_THAT(CpusOfARun(*second), ElementsAre(all[1 % all.size()]));
}

// On the CPU, where nothing else computes, and on whatever processor.
TEST(PlannedWholeTest, RunsAtOnceWhereItWaitsForNothing) {
  const auto turns = std::make_shared<ComputeTurns>(2);
  const auto runs_at_once = [](const ModelSpec& spec, std::shared_ptr<ComputeTurns> its) {
    const std::shared_ptr<Model> model =
        *NewServedModel(spec, {std::make_shared<SumPlan>(0, 8)}, {.turns = std::move(its)});
    return NewSession(model)->RunsAtOnce(0);
  };
  ModelSpec spec = SumSpec();
  EXPECT_TRUE(runs_at_once(spec, turns));
  ExecutorTurn other(turns, std::make_shared<ComputeTurns::Share>());
  other.Begin(1);
  EXPECT_FALSE(runs_at_once(spec, turns));
  other.End();
  EXPECT_TRUE(runs_at_once(spec, turns));
  EXPECT_FALSE(runs_at_once(spec, nullptr));
  spec.pin_threads = true;
  EXPECT_FALSE(runs_at_once(spec, turns));
  spec.pin_threads = false;
  spec.instance_kind = InstanceKind::kGpu;
  EXPECT_FALSE(runs_at_once(spec, turns));
}

// Two requests whose inputs Stage has copied, and then a batch of which one was not.
TEST(PlannedWholeTest, TakesStagedInputsFromWhereTheyAre) {
  const auto plan = std::make_shared<SumPlan>(0, 8);
  plan->has_sources = true;
  const auto model = NewModel(SumSpec(), plan);
  const auto session = NewSession(model);
  for (const bool both : {true, false}) {
    Item first, second;
    first.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
    second.Add({2, 2}, {3, 4, 5, 6}).Add({2, 1}, {20, 30});
    std::vector<BatchItem> batch = {first.Batched(1), second.Batched(2)};
    const auto staged = model->Stage(first.inputs()), also_staged = both ? model->Stage(second.inputs()) : nullptr;
    ASSERT_NE(staged, nullptr);
    first.Forget();
    plan->log.copies = 0;
    BatchTimes times;
    ASSERT_TRUE(session->Run(batch, times).ok());
    EXPECT_EQ(plan->log.copies, both ? 4 : 0);
    EXPECT_THAT(first.output(0), ElementsAre(11, 12));
    EXPECT_THAT(second.output(0), ElementsAre(23, 24, 35, 36));
    EXPECT_THAT(second.output(1), ElementsAre(40, 60));
  }
}

TEST(PlannedWholeTest, StagesNothingWhereThereIsNoRoom) {
  const auto plan = std::make_shared<SumPlan>(0, 8);
  const auto model = NewModel(SumSpec(), plan);
  Item item;
  item.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
  item.Batched(1);
  EXPECT_EQ(model->Stage(item.inputs()), nullptr);  // the plan has no memory for it
  plan->has_sources = true;
  const auto staging = NewModel(SumSpec(), plan);
  std::vector<std::shared_ptr<const void>> staged;
  const auto stage = [&] {
    Item next;
    next.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
    next.Batched(1);
    staged.push_back(staging->Stage(next.inputs()));
    return staged.back() != nullptr;
  };
  while (stage()) ASSERT_LT(staged.size(), 1000u);
  staged.clear();
  EXPECT_TRUE(stage());
}

TEST(PlannedWholeTest, FollowsTheOrderOfTheSpecification) {
  ModelSpec spec = SumSpec();
  std::swap(spec.inputs[0], spec.inputs[1]);
  spec.outputs.erase(spec.outputs.begin());
  const auto model = NewModel(spec, std::make_shared<SumPlan>(0, 8));
  const auto session = NewSession(model);
  Item item;
  item.Add({1, 1}, {10}).Add({1, 2}, {1, 2});
  std::vector<BatchItem> batch = {item.Batched(1)};
  BatchTimes times;
  ASSERT_TRUE(session->Run(batch, times).ok());
  ASSERT_EQ(item.outputs(), 1u);
  EXPECT_THAT(item.output(0), ElementsAre(20));
}

TEST(PlannedWholeTest, AFixedBatchIsPartOfTheShapes) {
  const auto model = NewModel(SumSpec(2), std::make_shared<SumPlan>(2, 2));
  EXPECT_EQ(model->spec().max_batch_size, 0);
  EXPECT_THAT(model->spec().inputs[0].dims, ElementsAre(2, 2));
  const auto session = NewSession(model);
  Item item;
  item.Add({2, 2}, {1, 2, 3, 4}).Add({2, 1}, {10, 20});
  std::vector<BatchItem> batch = {item.Batched(1)};
  BatchTimes times;
  ASSERT_TRUE(session->Run(batch, times).ok());
  EXPECT_THAT(item.output(0), ElementsAre(11, 12, 23, 24));
  EXPECT_THAT(item.shape(0), ElementsAre(2, 2));
}

TEST(PlannedWholeTest, AFreeBatchWithoutMaxBatchSize) {
  ModelSpec spec = SumSpec();
  spec.max_batch_size = 0;
  spec.inputs[0].dims = {-1, 2};
  spec.inputs[1].dims = {-1, -1};
  spec.outputs[0].dims = {-1, 2};
  spec.outputs[1].dims = {-1, 1};
  const auto model = NewModel(spec, std::make_shared<SumPlan>(0, 8));
  EXPECT_THAT(model->spec().inputs[1].dims, ElementsAre(-1, 1));
  const auto session = NewSession(model);
  const auto run = [&](Item& item) {
    std::vector<BatchItem> batch = {item.Batched(1)};
    BatchTimes times;
    return session->Run(batch, times);
  };
  Item three;
  three.Add({3, 2}, {1, 2, 3, 4, 5, 6}).Add({3, 1}, {10, 20, 30});
  ASSERT_TRUE(run(three).ok());
  EXPECT_THAT(three.output(1), ElementsAre(20, 40, 60));
  EXPECT_THAT(three.shape(1), ElementsAre(3, 1));

  Item none, many, uneven;
  const Status too_few = run(none.Add({0, 2}, {}).Add({0, 1}, {}));
  EXPECT_EQ(too_few.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(too_few.message()), HasSubstr("model 'sum': input 'a' has 0 rows"));
  EXPECT_THAT(std::string(run(many.Add({9, 2}, std::vector<float>(18)).Add({9, 1}, std::vector<float>(9))).message()),
              HasSubstr("must be at least 1, and at most 8"));
  EXPECT_THAT(std::string(run(uneven.Add({2, 2}, std::vector<float>(4)).Add({3, 1}, std::vector<float>(3))).message()),
              HasSubstr("input 'b' of model 'sum' has shape [3,1]"));
}

TEST(PlannedWholeTest, AFailedRunIsReported) {
  auto plan = std::make_shared<SumPlan>(0, 8);
  plan->run_status = absl::InternalError("device lost");
  const auto model = NewModel(SumSpec(), plan);
  const auto session = NewSession(model);
  Item item;
  item.Add({1, 2}, {1, 2}).Add({1, 1}, {10});
  std::vector<BatchItem> batch = {item.Batched(1)};
  BatchTimes times;
  EXPECT_EQ(session->Run(batch, times), absl::InternalError("model 'sum': device lost"));
}

TEST(PlannedWholeTest, RefusesASpecificationThatDoesNotFit) {
  ModelSpec unknown = SumSpec();
  unknown.inputs[0].name = "x";
  EXPECT_EQ(RefusalOfSum(unknown), "input 'x' of model 'sum' is configured, but the model has 'a', 'b'");

  ModelSpec missing = SumSpec();
  missing.inputs.pop_back();
  EXPECT_EQ(RefusalOfSum(missing), "input 'b' of model 'sum' is not configured");

  ModelSpec twice = SumSpec();
  twice.outputs[1] = twice.outputs[0];
  EXPECT_EQ(RefusalOfSum(twice), "output 'sum' of model 'sum' is configured twice");

  ModelSpec dtype = SumSpec();
  dtype.outputs[0].dtype = DType::kInt64;
  EXPECT_EQ(RefusalOfSum(dtype), "output 'sum' of model 'sum' is configured as INT64, but is FP32");

  ModelSpec dims = SumSpec();
  dims.inputs[0].dims = {3};
  EXPECT_EQ(RefusalOfSum(dims),
            "input 'a' of model 'sum' is configured with dims [3], but with max_batch_size 8 it has [2]");

  ModelSpec rank = SumSpec();
  rank.max_batch_size = 0;
  EXPECT_THAT(RefusalOfSum(rank), HasSubstr("with dims [2], but with max_batch_size 0 it has [-1,2]"));

  ModelSpec large = SumSpec();
  large.max_batch_size = 9;
  EXPECT_THAT(RefusalOfSum(large), HasSubstr("planned for at most 8 rows: max_batch_size 9 is too large"));

  ModelSpec fixed = SumSpec(2);
  fixed.max_batch_size = 4;
  EXPECT_THAT(RefusalOfSum(fixed, 2), HasSubstr("fixed at 2: max_batch_size must be 0, not 4"));
}

TEST(DeriveSpecTest, AFreeBatchAllows64Rows) {
  const ModelSpec spec = *DeriveSpec(InterfaceOf(SumNetwork(0)));
  EXPECT_EQ(spec.max_batch_size, 64);
  EXPECT_EQ(spec.backend, "swizzle");
  EXPECT_TRUE(spec.dynamic_batching);
  ASSERT_EQ(spec.inputs.size(), 2u);
  EXPECT_EQ(spec.inputs[0].name, "a");
  EXPECT_EQ(spec.inputs[0].dtype, DType::kFloat32);
  EXPECT_THAT(spec.inputs[0].dims, ElementsAre(2));
  ASSERT_EQ(spec.outputs.size(), 2u);
  EXPECT_EQ(spec.outputs[1].name, "twice");
}

// A layer whose kernel is of its weight's format, unless a dense one.
LayerReport Layer(std::string op, Format format, std::string kernel, int64_t rows, int64_t cols, int64_t nonzeros) {
  LayerReport layer;
  layer.op = std::move(op);
  layer.format = format;
  const Format weights = kernel == "conv_dense_f32_onednn" ? Format::kDense : format;
  if (!kernel.empty()) layer.candidates = {{kernel, {}, false, weights}};
  layer.kernels = {std::move(kernel)};
  layer.weight_rows = rows;
  layer.weight_cols = cols;
  layer.nonzeros = nonzeros;
  return layer;
}

// A plan that is nothing but its report.
class ReportedPlan final : public testing::FakePlan {
 public:
  explicit ReportedPlan(PlanReport report) : FakePlan(Network(), 1) { report_ = std::move(report); }
  StatusOr<std::unique_ptr<Runner>> NewRunner(const RunnerOptions&) const override {
    return absl::UnimplementedError("");
  }
};

ModelFacts FactsOfPlan(PlanReport report) {
  const CompiledModel models[] = {std::make_shared<ReportedPlan>(std::move(report))};
  return FactsOf(models, 0);
}

TEST(FactsOfTest, SumsUpTheLayers) {
  PlanReport report;
  report.backend = "cpu";
  report.device = "a processor";
  report.threads = 2;
  report.micro_batch = 4;
  report.dense_bytes = 4000;
  report.stored_bytes = 1500;
  report.device_bytes = 1800;
  report.layers = {
      Layer("conv", Format::kCsr, "conv_csr_f32_avx2", 10, 40, 40),
      Layer("conv", Format::kCsr, "conv_csr_f32_avx2", 10, 40, 60),
      Layer("conv", Format::kCsr, "conv_dense_f32_onednn", 10, 10, 50),
      Layer("conv", Format::kDense, "conv_dense_f32_onednn", 10, 10, 100),
      Layer("max_pool", Format::kNone, "max_pool_none_f32_avx2", 0, 0, 0),
      Layer("reshape", Format::kNone, "", 0, 0, 0),
  };
  const ModelFacts facts = FactsOfPlan(report);
  EXPECT_DOUBLE_EQ(facts.sparsity, 0.75);
  EXPECT_EQ(facts.dense_bytes, 4000);
  EXPECT_EQ(facts.stored_bytes, 1500);
  EXPECT_EQ(facts.device_bytes, 1800);
  EXPECT_EQ(facts.dense_fallback_layers, 1);
  EXPECT_EQ(facts.device, "cpu");
  ASSERT_EQ(facts.kernels.size(), 3u);
  EXPECT_EQ(facts.kernels[0].kernel, "conv_csr_f32_avx2");
  EXPECT_EQ(facts.kernels[0].layers, 2);
  EXPECT_EQ(facts.kernels[2].op, "max_pool");
  EXPECT_THAT(facts.properties,
              UnorderedElementsAre(
                  Pair("swizzle_format", "csr:3,dense:1"), Pair("swizzle_sparsity", "0.7500"),
                  Pair("swizzle_nnz", "250"), Pair("swizzle_dense_bytes", "4000"), Pair("swizzle_stored_bytes", "1500"),
                  Pair("swizzle_device_bytes", "1800"), Pair("swizzle_device", "a processor"),
                  Pair("swizzle_threads", "2"), Pair("swizzle_micro_batch", "4"),
                  Pair("swizzle_kernels", "conv_csr_f32_avx2:2,conv_dense_f32_onednn:2,max_pool_none_f32_avx2:1"),
                  Pair("swizzle_dense_fallback_layers", "1")));
}

TEST(FactsOfTest, AModelWithoutWeightsIsNotSparse) {
  const ModelFacts facts = FactsOfPlan(PlanReport{});
  EXPECT_EQ(facts.sparsity, 0.0);
  EXPECT_THAT(facts.kernels, IsEmpty());
}

}  // namespace
}  // namespace swizzle
