// Layers that are quantised when they run, each position by itself, on a GPU: the CPU's bits by each row, and plans.
// Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/format/csr.h"
#include "kernels/reference/layout.h"
#include "model_loader/plan/planner.h"
#include "tests/support/drawn_quantisation.h"
#include "tests/support/gpu_beside_cpu.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_encoder.h"

namespace swizzle {
namespace {

using testing::Batch;
using testing::DrawFloats;
using testing::ExpectClose;
using testing::kNoEpilogue;
using testing::kRelu;
using testing::MustPlan;
using testing::NetworkBuilder;
using testing::RunImages;
using testing::SquareWindow;

constexpr int64_t kChannels = 72;

// Pointwise convolutions whose weights are whole numbers and whose inputs have no scale.
Network NetworkOf(NetworkBuilder& b, int x, int y) {
  const NetworkPort input = b.Port(x, "x"), output = b.Port(y, "y");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  for (Weight& weight : network.weights) {
    constexpr float kScale = 0.011f;
    DenseMatrix dense = weight.ToDense();
    for (float& value : dense.values) value = std::clamp(std::nearbyint(value / kScale), -127.0f, 127.0f) * kScale;
    weight.matrix = CsrMatrix::FromDense(dense);
    weight.quantisation = Quantisation{DType::kInt8, {kScale}, {}};
  }
  return network;
}

// One with a residual and whole packs of channels, the other without.
Network TwoLayers(double sparsity) {
  NetworkBuilder b(7, 0);
  const int x = b.Value("x", kChannels, 5, 7);
  const int a = b.Conv(x, kChannels, SquareWindow(1, 1, 0), sparsity, kRelu, x);
  return NetworkOf(b, x, b.Conv(a, 41, SquareWindow(1, 1, 0), sparsity, kNoEpilogue));
}

// What a row of FP32 makes of an input in NCHW.
std::vector<float> RunRow(Backend& gpu, const Kernel& kernel, const Weight& weight, const Problem& problem,
                          const std::vector<float>& input) {
  const auto packed = gpu.Prepare(kernel, weight, problem);
  const auto stream = gpu.NewStream(0);
  const size_t workspace_bytes = kernel.workspace_bytes(problem);
  std::vector<float> in(LayoutElements(problem.input, problem.from.layout));
  std::vector<float> out(LayoutElements(problem.output, problem.to.layout));
  reference::ToLayout(input, problem.input, problem.from.layout, 0.0f, in);
  const auto x = gpu.Allocate(in.size() * sizeof(float)), y = gpu.Allocate(out.size() * sizeof(float));
  const auto workspace = gpu.Allocate(workspace_bytes);
  EXPECT_TRUE(packed.ok() && stream.ok() && x.ok() && y.ok() && workspace.ok());
  (*stream)->Copy((*x)->data(), in.data(), in.size() * sizeof(float));
  const Operand operand = {.data = (*x)->data()};
  const KernelArgs args = {.problem = &problem,
                           .weight = packed->get(),
                           .inputs = {&operand, 1},
                           .output = {.data = (*y)->data()},
                           .workspace = {(*workspace)->data(), workspace_bytes}};
  (*stream)->Run([&] { kernel.run(args, **stream); });
  (*stream)->Copy(out.data(), (*y)->data(), out.size() * sizeof(float));
  EXPECT_TRUE((*stream)->Synchronize().ok());
  return reference::FromLayout(out, problem.output, problem.to.layout);
}

class CudaDynamicPlanTest : public testing::GpuBesideCpu {};

TEST_F(CudaDynamicPlanTest, RowsQuantisePositionsAsTheCpuDoes) {
  for (const double sparsity : {0.0, 0.9}) {
    NetworkBuilder b(7, 0);
    const int x = b.Value("x", kChannels, 11, 7);
    const Network network = NetworkOf(b, x, b.Conv(x, 41, SquareWindow(1, 1, 0), sparsity, kRelu));
    const auto plan = MustPlan(network, *cpu_);
    ASSERT_NE(plan, nullptr);
    const std::vector<float> input = DrawFloats(static_cast<size_t>(3 * network.values[0].elements()), 7);
    const std::vector<float> expected = RunImages(**plan->NewRunner({}), 3, input);
    int tried = 0;
    for (const Kernel& kernel : gpu_->kernels()) {
      if (kernel.name.find("_position_u8_f32_") == std::string_view::npos) continue;
      SCOPED_TRACE(kernel.name);
      const Problem problem = AsRowSolves(kernel, LayerProblem(network, network.layers[0], 3, 1));
      ExpectClose(RunRow(*gpu_, kernel, network.weights[0], problem, input), expected, 0.0f);
      ++tried;
    }
    EXPECT_GT(tried, 0);
  }
}

TEST_F(CudaDynamicPlanTest, PlansAreCloseToTheCpus) {
  for (const double sparsity : {0.0, 0.5, 0.9}) {
    const Network network = TwoLayers(sparsity);
    const auto cpu = MustPlan(network, *cpu_);
    ASSERT_NE(cpu, nullptr);
    auto cpu_runner = *cpu->NewRunner({});
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16, Precision::kInt8}) {
      const auto gpu = MustPlan(network, *gpu_, precision);
      ASSERT_NE(gpu, nullptr);
      auto gpu_runner = *gpu->NewRunner({});
      for (const int64_t batch : {3, 64, 1, 3}) {
        SCOPED_TRACE(Concat("sparsity ", sparsity, " in ", PrecisionName(precision), ", batch ", batch));
        ExpectCloseImages(network, *gpu_runner, *cpu_runner, batch, 3e-2f);
      }
    }
  }
}

// In INT8 all linear layers multiply bytes. Attention and norms round otherwise than the CPU's, so that some bytes are
// a step off.
TEST_F(CudaDynamicPlanTest, EncodersAreCloseToTheCpus) {
  for (const double sparsity : {0.0, 0.9}) {
    Network network = testing::MakeRandomEncoder({.sparsity = sparsity, .channels = 64});
    ASSERT_TRUE(testing::QuantiseDrawn(network).ok());
    const auto cpu = MustPlan(network, *cpu_);
    ASSERT_NE(cpu, nullptr);
    auto cpu_runner = *cpu->NewRunner({});
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16, Precision::kInt8}) {
      const auto gpu = MustPlan(network, *gpu_, precision);
      ASSERT_NE(gpu, nullptr);
      for (const LayerReport& layer : gpu->report().layers) {
        if (layer.op != "Conv" || precision != Precision::kInt8) continue;
        EXPECT_NE(layer.kernels[0].find("_position_u8_"), std::string::npos) << layer.name << ": " << layer.kernels[0];
      }
      auto gpu_runner = *gpu->NewRunner({});
      for (const std::vector<int32_t>& lengths :
           std::vector<std::vector<int32_t>>{{7}, {1}, {70, 3, 1, 66}, {60, 60, 60, 60, 60, 60, 60, 60}}) {
        SCOPED_TRACE(Concat("sparsity ", sparsity, " in ", PrecisionName(precision), ", first length ", lengths[0]));
        ExpectCloseSequences(*gpu_runner, *cpu_runner, Batch(lengths, lengths.size() > 1), 5e-2f);
      }
    }
  }
}

}  // namespace
}  // namespace swizzle
