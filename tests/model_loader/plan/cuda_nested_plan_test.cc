// Plans in which operands of Concats lie in what these make, and Slices in what they are of, compute what the CPU does,
// in every layout and at batches that move rows. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "model_loader/passes/lower.h"
#include "model_loader/passes/pipeline.h"
#include "model_loader/plan/planner.h"
#include "tests/model_loader/plan/gpu_networks.h"
#include "tests/support/filtered_backend.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

// Transposes and a Reshape between make 32 channels of 8x8 positions 64 of 32, of which half are sliced, and all joined
// with others, as they lie.
Network Renamed() {
  using Ints = std::vector<int64_t>;
  testing::OnnxBuilder builder;
  builder.Input("x", {-1, 16, 8, 8}).Int64s("turned", {3}, {0, 32, 64}).Int64s("columns", {4}, {0, 64, 32, 1});
  builder.Int64s("halves", {2}, {32, 32});
  const auto weight = [&](const std::string& name, int64_t outputs, int64_t inputs, unsigned seed) {
    builder.Floats(name, {outputs, inputs, 1, 1}, testing::DrawFloats(static_cast<size_t>(outputs * inputs), seed));
  };
  weight("w0", 32, 16, 1), weight("w1", 32, 32, 2), weight("w2", 32, 32, 3), weight("w3", 16, 128, 4);
  builder.Node("Conv", {"x", "w0"}, {"u"}).Node("Transpose", {"u"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}});
  builder.Node("Reshape", {"t", "turned"}, {"r"}).Node("Transpose", {"r"}, {"q"}, {{"perm", Ints{0, 2, 1}}});
  builder.Node("Reshape", {"q", "columns"}, {"p"}).Node("Split", {"p", "halves"}, {"a", "b"}, {{"axis", int64_t{1}}});
  builder.Node("Conv", {"a", "w1"}, {"c"}).Node("Conv", {"b", "w2"}, {"d"});
  builder.Node("Concat", {"p", "c", "d"}, {"y"}, {{"axis", int64_t{1}}}).Node("Conv", {"y", "w3"}, {"z"}).Output("z");
  Graph graph = *builder.Read();
  SWIZZLE_CHECK(RunPasses(graph).ok());
  return *Lower(std::move(graph));
}

class CudaNestedPlanTest : public ::testing::TestWithParam<bool> {};

TEST_P(CudaNestedPlanTest, ComputesWhatTheCpuDoes) {
  const auto gpu = NewCudaBackend(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  const Network network = GetParam() ? Renamed() : testing::Detector().Build();
  const auto cpu = NewCpuBackend();
  const auto expected_plan = testing::MustPlan(network, *cpu);
  ASSERT_NE(expected_plan, nullptr);
  auto expected_runner = *expected_plan->NewRunner({});
  for (auto* const keeps : {testing::IsInRows, testing::IsInNhwc, testing::CopiesInBatched, testing::IsAny}) {
    testing::FilteredBackend backend(**gpu, keeps);
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16}) {
      if (keeps == testing::CopiesInBatched && precision == Precision::kFloat32) continue;  // has no such rows
      const auto plan = testing::MustPlan(network, backend, precision);
      ASSERT_NE(plan, nullptr);
      auto runner = *plan->NewRunner({});
      for (const int64_t batch : {3, 1, 8, 5, 3}) {
        SCOPED_TRACE(Concat(PrecisionName(precision), ", batch ", batch));
        const auto drawn = testing::DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 7);
        testing::ExpectClose(testing::RunImages(*runner, batch, drawn),
                             testing::RunImages(*expected_runner, batch, drawn),
                             precision == Precision::kFloat32 ? 1e-4f : 1e-2f);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, CudaNestedPlanTest, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Renamed" : "Detector"; });

}  // namespace
}  // namespace swizzle
