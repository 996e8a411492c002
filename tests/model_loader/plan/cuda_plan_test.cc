// Plans on a GPU compute what plans on the CPU compute: whole networks, every batch size that rounding makes, first
// runs and replays of what they recorded. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "kernels/format/csr.h"
#include "model_loader/plan/planner.h"
#include "model_loader/plan/run/device_plan.h"
#include "tests/support/drawn_models.h"
#include "tests/support/drawn_quantisation.h"
#include "tests/support/gpu_beside_cpu.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using testing::Batch;
using testing::DrawBytes;
using testing::DrawFloats;
using testing::ExpectClose;
using testing::kNoEpilogue;
using testing::kRelu;
using testing::MakeRandomEncoder;
using testing::MakeRandomNetwork;
using testing::MustPlan;
using testing::NetworkBuilder;
using testing::RunBytes;
using testing::RunImages;
using testing::RunSequences;
using testing::SquareWindow;

class CudaPlanTest : public testing::GpuBesideCpu {
 protected:
  // In all precisions but FP32.
  void ExpectEncoderClose(const Network& network);
};

TEST_F(CudaPlanTest, NetworksOfImagesEqualTheCpus) {
  for (const double sparsity : {0.0, 0.5, 0.9}) {
    const Network network = MakeRandomNetwork({.sparsity = sparsity, .image = 33});
    const auto cpu = MustPlan(network, *cpu_), gpu = MustPlan(network, *gpu_);
    ASSERT_TRUE(cpu != nullptr && gpu != nullptr);
    auto cpu_runner = *cpu->NewRunner({}), gpu_runner = *gpu->NewRunner({});
    for (const int64_t batch : {3, 64, 1, 17, 3, 2, 64, 33, 1}) {
      SCOPED_TRACE(Concat("sparsity ", sparsity, ", batch ", batch));
      ExpectCloseImages(network, *gpu_runner, *cpu_runner, batch, 1e-4f);
    }
  }
}

// From the edge of a plan in every precision, with planes that whole loads fit and others.
TEST_F(CudaPlanTest, ImagesOfBytesEqualTheCpus) {
  for (const int64_t image : {33, 32}) {
    Network network = MakeRandomNetwork({.image = image});
    network.inputs[0].dtype = DType::kUint8;
    network.values[0].quantisation = Quantisation{DType::kUint8, {1.0f / 64}, {100}};
    const auto cpu = MustPlan(network, *cpu_);
    ASSERT_NE(cpu, nullptr);
    auto cpu_runner = *cpu->NewRunner({});
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16, Precision::kBFloat16}) {
      const auto gpu = MustPlan(network, *gpu_, precision);
      ASSERT_NE(gpu, nullptr);
      auto gpu_runner = *gpu->NewRunner({});
      for (const int64_t batch : {3, 64, 1, 3}) {
        SCOPED_TRACE(Concat(image, " wide in ", PrecisionName(precision), ", batch ", batch));
        const auto input = DrawBytes(static_cast<size_t>(batch * network.values[0].elements()), 7);
        const float tolerance = precision == Precision::kFloat32   ? 1e-4f
                                : precision == Precision::kFloat16 ? 1e-2f
                                                                   : 6e-2f;
        ExpectClose(RunBytes(*gpu_runner, batch, input), RunBytes(*cpu_runner, batch, input), tolerance);
      }
    }
  }
}

// Two pointwise convolutions whose weights and inputs may be stored as bytes.
Network QuantisedNetwork() {
  NetworkBuilder builder(3, 0);
  const int x = builder.Value("x", 64, 9, 7);
  const int a = builder.Conv(x, 96, SquareWindow(1, 1, 0), 0.9, kRelu);
  const int y = builder.Conv(a, 40, SquareWindow(1, 1, 0), 0.5, kNoEpilogue);
  const NetworkPort input = builder.Port(x, "x"), output = builder.Port(y, "y");
  Network network = builder.Finish();
  network.inputs = {input};
  network.outputs = {output};
  network.values[x].quantisation = Quantisation{DType::kUint8, {1.0f / 32}, {128}};
  network.values[a].quantisation = Quantisation{DType::kUint8, {1.0f / 64}, {}};
  for (Weight& weight : network.weights) {
    constexpr float kScale = 1.0f / 64, kBiasStep = 1.0f / 4096;
    DenseMatrix dense = weight.ToDense();
    for (float& value : dense.values) value = std::clamp(std::nearbyint(value / kScale), -127.0f, 127.0f) * kScale;
    for (float& bias : weight.bias) bias = std::nearbyint(bias / kBiasStep) * kBiasStep;
    weight.matrix = CsrMatrix::FromDense(dense);
    weight.quantisation = Quantisation{DType::kInt8, {kScale}, {}};
  }
  return network;
}

TEST_F(CudaPlanTest, LayersOfBytesEqualTheCpus) {
  const Network network = QuantisedNetwork();
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  const auto cpu = MustPlan(network, *cpu_);
  ASSERT_NE(cpu, nullptr);
  auto cpu_runner = *cpu->NewRunner({});
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat16}) {
    const auto gpu = MustPlan(network, *gpu_, precision);
    ASSERT_NE(gpu, nullptr);
    for (const LayerReport& layer : gpu->report().layers) {
      EXPECT_NE(layer.kernels[0].find("_u8_"), std::string::npos) << layer.kernels[0];
    }
    auto gpu_runner = *gpu->NewRunner({});
    for (const int64_t batch : {3, 64, 1}) {
      SCOPED_TRACE(Concat(PrecisionName(precision), ", batch ", batch));
      const float tolerance = precision == Precision::kFloat32 ? 1e-6f : 1e-3f;
      ExpectCloseImages(network, *gpu_runner, *cpu_runner, batch, tolerance);
    }
  }
}

// Every kind of layer that has bytes, with windows and strides: all in whole numbers.
Network NetworkOfBytes(double sparsity) {
  NetworkBuilder b(5, 0);
  const int image = b.Value("image", 3, 37, 35);
  int x = b.Conv(image, 32, SquareWindow(7, 2, 3), 0.0, kRelu);
  x = b.Pool(Op::kMaxPool, x, SquareWindow(3, 2, 1));
  const int shortcut = b.Conv(x, 64, SquareWindow(1, 2, 0), sparsity, kNoEpilogue);
  x = b.Conv(x, 48, SquareWindow(3, 1, 1), sparsity, kRelu);
  x = b.Conv(x, 64, SquareWindow(3, 2, 1), sparsity, kRelu, shortcut);
  x = b.Depthwise(x, SquareWindow(3, 1, 1), testing::kRelu6);
  x = b.Conv(x, 72, SquareWindow(1, 1, 0), sparsity, kRelu);
  const int first = x;
  x = b.Depthwise(x, SquareWindow(5, 1, 2), kRelu);
  x = b.Pointwise(Op::kAdd, {x, first});
  x = b.Depthwise(x, SquareWindow(3, 2, 1), kRelu);
  x = b.Conv(x, 50, SquareWindow(3, 1, 1), sparsity, kNoEpilogue);
  x = b.Linear(b.Flatten(b.MeanOfPlane(x)), 21, 0.0);
  const NetworkPort input = b.Port(image, "image"), output = b.Port(x, "scores");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  const Status status = testing::QuantiseDrawn(network);
  EXPECT_TRUE(status.ok()) << status;
  return network;
}

// To the bit, and without real numbers between the first layer and the last.
TEST_F(CudaPlanTest, WholeNetworksOfBytesEqualTheCpus) {
  for (const double sparsity : {0.0, 0.9}) {
    const Network network = NetworkOfBytes(sparsity);
    const auto cpu = MustPlan(network, *cpu_);
    ASSERT_NE(cpu, nullptr);
    auto cpu_runner = *cpu->NewRunner({});
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16}) {
      const auto gpu = MustPlan(network, *gpu_, precision);
      ASSERT_NE(gpu, nullptr);
      for (const LayerReport& layer : gpu->report().layers) {
        if (!layer.moves_data()) continue;  // the input's, which is held to its range where it is quantised
        EXPECT_NE(layer.kernels[0].find("_u8"), std::string::npos) << layer.name << ": " << layer.kernels[0];
      }
      auto gpu_runner = *gpu->NewRunner({});
      for (const int64_t batch : {1, 3, 64, 3}) {
        SCOPED_TRACE(Concat("sparsity ", sparsity, " in ", PrecisionName(precision), ", batch ", batch));
        const float tolerance = precision == Precision::kFloat32 ? 0.0f : 1e-3f;
        ExpectCloseImages(network, *gpu_runner, *cpu_runner, batch, tolerance);
      }
    }
  }
}

// Inputs in pieces from host memory of the caller's, in turn with such as the plan copies itself.
TEST_F(CudaPlanTest, CopiedInputsCountAsThePlansOwn) {
  const Network network = MakeRandomNetwork({.image = 33});
  const auto plan = MustPlan(network, *gpu_);
  ASSERT_NE(plan, nullptr);
  auto runner = *plan->NewRunner({});
  const int64_t row = network.values[0].elements();
  for (const int64_t batch : {3, 3, 17, 1, 3, 17}) {
    const auto input = DrawFloats(static_cast<size_t>(batch * row), 7);
    const auto expected = RunImages(*runner, batch, input);
    RunImages(*runner, batch, DrawFloats(input.size(), 8));  // leaves others in the plan's memory
    const auto source = *plan->AllocateSource(input.size() * sizeof(float));
    ASSERT_NE(source, nullptr);
    std::ranges::copy(std::as_bytes(std::span(input)), source->data());
    const size_t first = static_cast<size_t>(row) * sizeof(float), all = input.size() * sizeof(float);
    runner->CopyInput(0, batch, 0, {source->data(), first});
    runner->CopyInput(0, batch, first, {source->data() + first, all - first});
    ASSERT_TRUE(runner->Run(batch).ok());
    const auto output = runner->Output(0, batch);
    EXPECT_TRUE(std::ranges::equal(output, expected)) << batch;
  }
}

TEST_F(CudaPlanTest, EachPowerOfTwoIsMeasured) {
  const auto plan = MustPlan(MakeRandomNetwork({.sparsity = 0.9, .image = 33}), *gpu_);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->report().measured_batches, (std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64}));
  for (const LayerReport& layer : plan->report().layers) {
    for (const LayerReport::KernelTimes& candidate : layer.candidates) {
      EXPECT_EQ(candidate.microseconds.size(), 7u) << candidate.kernel;
      for (const double time : candidate.microseconds) EXPECT_TRUE(std::isfinite(time)) << candidate.kernel;
    }
  }
}

TEST_F(CudaPlanTest, StepsAddUpToARun) {
  const Network network = MakeRandomNetwork({.image = 33});
  const auto plan = MustPlan(network, *gpu_);
  ASSERT_NE(plan, nullptr);
  auto runner = *plan->NewRunner({});
  RunImages(*runner, 4, DrawFloats(static_cast<size_t>(4 * network.values[0].elements()), 7));
  auto& steps = dynamic_cast<DeviceSteps&>(*runner);
  const auto times = steps.TimeSteps(4);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->size(), steps.ListFor(4).steps.size());
  absl::Duration all;
  for (const absl::Duration time : *times) all += time;
  EXPECT_GT(all, absl::Microseconds(1));
  EXPECT_LT(all, absl::Milliseconds(100));
}

TEST_F(CudaPlanTest, OtherPrecisionsAreCloseToSingle) {
  const Network network = MakeRandomNetwork({.image = 33});
  const auto single = MustPlan(network, *gpu_);
  ASSERT_NE(single, nullptr);
  auto runner = *single->NewRunner({});
  for (const Precision precision :
       {Precision::kFloat16x3, Precision::kTf32, Precision::kFloat16, Precision::kBFloat16}) {
    const auto other = MustPlan(network, *gpu_, precision);
    ASSERT_NE(other, nullptr);
    auto other_runner = *other->NewRunner({});
    const auto input = DrawFloats(static_cast<size_t>(5 * network.values[0].elements()), 7);
    ExpectClose(RunImages(*other_runner, 5, input), RunImages(*runner, 5, input),
                precision == Precision::kFloat16x3  ? 1e-4f
                : precision == Precision::kBFloat16 ? 6e-2f
                                                    : 1e-2f);
  }
}

TEST_F(CudaPlanTest, EncodersEqualTheCpus) {
  for (const double sparsity : {0.0, 0.9}) {
    const Network network = MakeRandomEncoder({.sparsity = sparsity});
    const auto cpu = MustPlan(network, *cpu_), gpu = MustPlan(network, *gpu_);
    ASSERT_TRUE(cpu != nullptr && gpu != nullptr);
    auto cpu_runner = *cpu->NewRunner({}), gpu_runner = *gpu->NewRunner({});
    for (const std::vector<int32_t>& lengths : std::vector<std::vector<int32_t>>{
             {7}, {1}, {70, 3, 1, 66}, {1, 1, 1}, {5, 2}, {70, 3, 1, 66}, {1}, {60, 60, 60, 60, 60, 60, 60, 60}}) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(Concat("sparsity ", sparsity, ", first length ", lengths[0], masked ? ", masked" : ""));
        ExpectCloseSequences(*gpu_runner, *cpu_runner, Batch(lengths, masked), 1e-4f);
      }
    }
  }
}

void CudaPlanTest::ExpectEncoderClose(const Network& network) {
  const auto cpu = MustPlan(network, *cpu_);
  ASSERT_NE(cpu, nullptr);
  auto cpu_runner = *cpu->NewRunner({});
  for (const Precision precision : {Precision::kTf32, Precision::kFloat16, Precision::kBFloat16}) {
    const auto gpu = MustPlan(network, *gpu_, precision);
    ASSERT_NE(gpu, nullptr);
    auto gpu_runner = *gpu->NewRunner({});
    const std::vector<std::vector<int32_t>> all_lengths = {
        {7}, {1}, {70, 3, 1, 66}, {70, 3, 1, 66}, {60, 60, 60, 60, 60, 60, 60, 60}};
    for (const std::vector<int32_t>& lengths : all_lengths) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(Concat(PrecisionName(precision), ", first length ", lengths[0], masked ? ", masked" : ""));
        const float tolerance = precision == Precision::kBFloat16 ? 6e-2f : 1e-2f;
        ExpectCloseSequences(*gpu_runner, *cpu_runner, Batch(lengths, masked), tolerance);
      }
    }
  }
}

// With heads that tensor cores take, apart and packed, whose keys and values are shared or not; those of the second
// turn queries and keys by position.
TEST_F(CudaPlanTest, EncodersInOtherPrecisionsAreClose) {
  for (const int32_t group_size : {1, 2}) {
    for (const int64_t rotary : {0, 80}) {
      ExpectEncoderClose(MakeRandomEncoder({.channels = 64, .group_size = group_size, .rotary = rotary}));
    }
  }
  ExpectEncoderClose(MakeRandomEncoder({.channels = 64, .places = 21}));
}

// Linear layers whose residual and norm one kernel computes, with the norm's results read in other layouts, too.
TEST_F(CudaPlanTest, NormsWithinProductsAreClose) {
  Network network = MakeRandomEncoder({.channels = 128});
  testing::DrawVectors(network, 64);
  const auto cpu = MustPlan(network, *cpu_);
  ASSERT_NE(cpu, nullptr);
  auto cpu_runner = *cpu->NewRunner({});
  for (const Precision precision : {Precision::kFloat16, Precision::kBFloat16}) {
    PlanOptions options;
    options.max_tokens = 512;
    options.precision = precision;
    options.tuning_budget = absl::ZeroDuration();  // by estimates one kernel is faster than two
    const auto made = MakePlan(network, *gpu_, options);
    ASSERT_TRUE(made.ok()) << made.status();
    const auto gpu = *made;
    const auto in_one = [](const LayerReport& layer) {
      return layer.op == "Conv" && layer.kernels[0].starts_with("layer_norm_rows_shfl_bw");
    };
    const bool offered = std::ranges::any_of(gpu_->kernels(), [&](const Kernel& kernel) {
      return kernel.name.starts_with("layer_norm_rows_shfl_bw") && (kernel.required_features & ~gpu_->features()) == 0;
    });
    EXPECT_EQ(std::ranges::count_if(gpu->report().layers, in_one), offered ? 2 : 0);
    auto gpu_runner = *gpu->NewRunner({});
    for (const std::vector<int32_t>& lengths :
         std::vector<std::vector<int32_t>>{{7}, {70, 3, 1, 66}, {70, 3, 1, 66}, {60, 60, 60, 60, 60, 60, 60, 60}}) {
      SCOPED_TRACE(Concat(PrecisionName(precision), ", first length ", lengths[0]));
      const float tolerance = precision == Precision::kBFloat16 ? 6e-2f : 1e-2f;
      ExpectCloseSequences(*gpu_runner, *cpu_runner, Batch(lengths, false), tolerance);
    }
  }
}

// Heads that the kernels of patterns take, and such that only dense ones do.
TEST_F(CudaPlanTest, SparseAttentionEqualsTheCpus) {
  constexpr int32_t kLength = 75;
  for (const int64_t channels : {24, 64, 128}) {
    const Network network = MakeRandomEncoder({.length = kLength, .channels = channels, .band = 9});
    const auto cpu = MustPlan(network, *cpu_), gpu = MustPlan(network, *gpu_);
    const auto half = MustPlan(network, *gpu_, Precision::kFloat16);
    ASSERT_TRUE(cpu != nullptr && gpu != nullptr && half != nullptr);
    auto cpu_runner = *cpu->NewRunner({}), gpu_runner = *gpu->NewRunner({}), half_runner = *half->NewRunner({});
    for (const size_t count : {1, 3, 6, 3, 1}) {
      SCOPED_TRACE(Concat(channels, " channels, ", count, " sequences"));
      const Batch batch(std::vector<int32_t>(count, kLength), false);
      const auto expected = RunSequences(*cpu_runner, batch);
      const auto actual = RunSequences(*gpu_runner, batch), rounded = RunSequences(*half_runner, batch);
      for (int i = 0; i < 2; ++i) {
        ExpectClose(actual[i], expected[i], 1e-4f);
        ExpectClose(rounded[i], expected[i], 2e-2f);
      }
    }
  }
}

// In windows that fill tiles and that don't, apart and packed, behind spare tokens, too.
TEST_F(CudaPlanTest, WindowsEqualTheCpus) {
  constexpr int32_t kLength = 72;
  for (const int64_t channels : {24, 64}) {
    const Network network = MakeRandomEncoder({.length = kLength, .channels = channels, .windows = 8});
    const auto cpu = MustPlan(network, *cpu_), gpu = MustPlan(network, *gpu_);
    const auto half = MustPlan(network, *gpu_, Precision::kFloat16);
    ASSERT_TRUE(cpu != nullptr && gpu != nullptr && half != nullptr);
    auto cpu_runner = *cpu->NewRunner({}), gpu_runner = *gpu->NewRunner({}), half_runner = *half->NewRunner({});
    for (const size_t count : {1, 3, 6, 3, 1}) {
      SCOPED_TRACE(Concat(channels, " channels, ", count, " sequences"));
      const Batch batch(std::vector<int32_t>(count, kLength), false);
      ExpectCloseSequences(*gpu_runner, *cpu_runner, batch, 1e-4f);
      ExpectCloseSequences(*half_runner, *cpu_runner, batch, 2e-2f);
    }
  }
}

// Which plans in INT8 may choose, and no others.
TEST_F(CudaPlanTest, SparseAttentionThroughBytesIsClose) {
  constexpr int32_t kLength = 75;
  const Network network = MakeRandomEncoder({.length = kLength, .channels = 128, .band = 9});
  const auto cpu = MustPlan(network, *cpu_), whole = MustPlan(network, *gpu_, Precision::kInt8);
  const auto half = MustPlan(network, *gpu_, Precision::kFloat16);
  ASSERT_TRUE(cpu != nullptr && whole != nullptr && half != nullptr);
  const auto may_round = [](const Plan& plan) {
    return std::ranges::any_of(plan.report().layers, [](const LayerReport& layer) {
      return std::ranges::any_of(layer.candidates, [](const auto& candidate) {
        return candidate.kernel == "sparse_attention_nhwc_pattern_f16_bytes_sm80";
      });
    });
  };
  EXPECT_TRUE(may_round(*whole));
  EXPECT_FALSE(may_round(*half));
  auto cpu_runner = *cpu->NewRunner({}), gpu_runner = *whole->NewRunner({});
  for (const size_t count : {1, 3, 6, 3, 1}) {
    ExpectCloseSequences(*gpu_runner, *cpu_runner, Batch(std::vector<int32_t>(count, kLength), false), 4e-2f);
  }
}

TEST_F(CudaPlanTest, ExecutorsOnStreamsOfTheirOwnShareAPlan) {
  const Network network = MakeRandomNetwork({.image = 33});
  const auto cpu = MustPlan(network, *cpu_), gpu = MustPlan(network, *gpu_);
  ASSERT_TRUE(cpu != nullptr && gpu != nullptr);
  auto cpu_runner = *cpu->NewRunner({});
  const auto input = DrawFloats(static_cast<size_t>(4 * network.values[0].elements()), 5);
  const auto expected = RunImages(*cpu_runner, 4, input);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto runner = *gpu->NewRunner({});
      for (int i = 0; i < 50; ++i) ExpectClose(RunImages(*runner, 4, input), expected, 1e-4f);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(gpu_->health().ok());
}

TEST_F(CudaPlanTest, TooMuchMemoryIsAnError) {
  EXPECT_EQ(gpu_->Allocate(size_t{1} << 46).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(gpu_->health().ok());
  EXPECT_TRUE(gpu_->Allocate(1 << 20).ok());
  // Nobody else's: what comes next is made and run as if nothing had happened.
  EXPECT_FALSE(gpu_->Allocate(size_t{1} << 46).ok());
  const auto plan = MustPlan(MakeRandomNetwork({.image = 33}), *gpu_);
  ASSERT_NE(plan, nullptr);
  auto runner = *plan->NewRunner({});
  EXPECT_FALSE(gpu_->Allocate(size_t{1} << 46).ok());
  EXPECT_TRUE(runner->Run(1).ok());
}

TEST(CudaDevicesTest, AnUnknownGpuIsNamed) {
  const auto count = CountCudaDevices();
  if (!count.ok()) GTEST_SKIP() << count.status().message();
  EXPECT_EQ(NewCudaBackend(*count).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace swizzle
