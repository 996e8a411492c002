// What plans on a GPU choose by times that the tuning cache says, and by times of their own where one kernel has next
// to nothing to do. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/pack/sparse_inputs.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "model_loader/plan/planner.h"
#include "tests/support/gpu_beside_cpu.h"
#include "tests/support/known_times.h"
#include "tests/support/network_builder.h"
#include "tests/support/random_encoder.h"

namespace swizzle {
namespace {

using testing::Batch;
using testing::KnowTimes;
using testing::SquareWindow;

class CudaChoiceTest : public testing::GpuBesideCpu {
 protected:
  std::shared_ptr<const Plan> Make(const Network& network, const PlanOptions& options) {
    auto plan = MakePlan(network, *gpu_, options);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : nullptr;
  }
  // As if a row took so long, and others 100 us.
  PlanOptions OptionsWith(const Network& network, Precision precision, std::string_view row, double microseconds,
                          TuningCache& cache) {
    PlanOptions options{.max_batch = 8,
                        .max_tokens = 512,
                        .threads = 1,
                        .precision = precision,
                        .tuning_budget = absl::ZeroDuration(),
                        .tuning_cache = &cache};
    KnowTimes(network, *gpu_, options, [&](const Kernel& kernel) { return kernel.name == row ? microseconds : 100.0; });
    return options;
  }
  static bool AnyRunsOn(const Plan& plan, std::string_view row) {
    return std::ranges::any_of(plan.report().layers, [&](const LayerReport& layer) { return layer.RunsOn(row); });
  }
};

constexpr char kBytes[] = "sparse_attention_nhwc_pattern_f16_bytes_sm80";

TEST_F(CudaChoiceTest, PlansInInt8AttendThroughBytesWhereThatIsFastest) {
  const Network network = testing::MakeRandomEncoder({.length = 75, .channels = 128, .band = 9});
  for (const double microseconds : {10.0, 1000.0}) {
    TuningCache cache("", *gpu_);
    const auto plan = Make(network, OptionsWith(network, Precision::kInt8, kBytes, microseconds, cache));
    ASSERT_NE(plan, nullptr);
    EXPECT_EQ(AnyRunsOn(*plan, kBytes), microseconds < 100.0) << microseconds;
  }
}

TEST_F(CudaChoiceTest, PlansInFp16NeverAttendThroughBytes) {
  const Network network = testing::MakeRandomEncoder({.length = 75, .channels = 128, .band = 9});
  TuningCache cache("", *gpu_);
  const auto plan = Make(network, OptionsWith(network, Precision::kFloat16, kBytes, 10.0, cache));
  ASSERT_NE(plan, nullptr);
  EXPECT_FALSE(AnyRunsOn(*plan, kBytes));
}

// Windows, strides, padding, several images of 1x1, a residual and a function behind what may be read as bitmaps.
Network NetworkOfZeros() {
  testing::NetworkBuilder b(3, 0);
  const int x = b.Value("x", 24, 37, 35);
  const int a = b.Conv(x, 72, SquareWindow(3, 1, 1), 0.9, testing::kRelu);
  const int c = b.Conv(a, 40, SquareWindow(3, 2, 1), 0.9, testing::kRelu);
  const int d = b.Conv(c, 130, SquareWindow(1, 1, 0), 0.8, testing::kRelu);
  const int e = b.Conv(d, 40, SquareWindow(1, 1, 0), 0.8, testing::kNoEpilogue, c);
  const int f =
      b.Function(b.Conv(e, 36, SquareWindow(1, 2, 0), 0.7, testing::kNoEpilogue), {FunctionKind::kSilu, 0, 0});
  const NetworkPort input = b.Port(x, "x"), output = b.Port(f, "f");
  Network network = b.Finish();
  network.inputs = {input};
  network.outputs = {output};
  for (NetworkValue& value : network.values) value.zeros = InputZeros{0.1, 0.3, 0.6, 0.8};
  return network;
}

// Whatever zeros requests bring, results are right: those of these layers are not the ones that were said.
TEST_F(CudaChoiceTest, WhatSkipsZerosOfInputsEqualsTheCpus) {
  const Network network = NetworkOfZeros();
  const auto cpu = testing::MustPlan(network, *cpu_);
  ASSERT_NE(cpu, nullptr);
  auto cpu_runner = *cpu->NewRunner({});
  for (const Precision precision : {Precision::kFloat16, Precision::kBFloat16}) {
    TuningCache cache("", *gpu_);
    const bool half = precision == Precision::kFloat16;
    const std::string row = half ? "conv_rows_bitmap_f16_both_sm80" : "conv_rows_bitmap_bf16_both_sm80";
    const auto plan = Make(network, OptionsWith(network, precision, row, 1.0, cache));
    ASSERT_NE(plan, nullptr);
    for (const LayerReport& layer : plan->report().layers) {
      EXPECT_TRUE(layer.RunsOn(row)) << layer.name << " runs on " << layer.kernels[0];
      EXPECT_TRUE(layer.SkipsInputZeros());
    }
    auto gpu_runner = *plan->NewRunner({});
    for (const int64_t batch : {3, 8, 1, 5, 3}) {
      SCOPED_TRACE(Concat(PrecisionName(precision), ", batch ", batch));
      ExpectCloseImages(network, *gpu_runner, *cpu_runner, batch, half ? 1e-2f : 6e-2f);
    }
  }
}

TEST_F(CudaChoiceTest, ZerosAreNotSkippedWhereOthersAreFasterOrNothingIsKnown) {
  constexpr char kRow[] = "conv_rows_bitmap_f16_both_sm80";
  Network network = NetworkOfZeros();
  TuningCache slow("", *gpu_), fast("", *gpu_);
  const auto slower = Make(network, OptionsWith(network, Precision::kFloat16, kRow, 1000.0, slow));
  ASSERT_NE(slower, nullptr);
  EXPECT_FALSE(AnyRunsOn(*slower, kRow));
  const PlanOptions options = OptionsWith(network, Precision::kFloat16, kRow, 1.0, fast);
  for (NetworkValue& value : network.values) value.zeros.reset();
  const auto unknown = Make(network, options);
  ASSERT_NE(unknown, nullptr);
  EXPECT_FALSE(AnyRunsOn(*unknown, kRow));
}

// Measured: 240 GFLOP where one element in 10,000 is not zero, and where runs of 32 hold half of their elements.
TEST_F(CudaChoiceTest, ZerosOfInputsAreMeasured) {
  constexpr int64_t kBatch = 16;
  constexpr char kRow[] = "conv_rows_bitmap_f16_both_sm80";
  std::vector<double> microseconds;
  for (const bool empty : {true, false}) {
    testing::NetworkBuilder b(3, kBatch);
    const int x = b.Value("x", 512, 28, 28);
    const int y = b.Conv(x, 2048, SquareWindow(3, 1, 1), 0.9, testing::kRelu);
    NetworkPort input = b.Port(x, "x"), output = b.Port(y, "y");
    Network network = b.Finish();
    for (NetworkPort* port : {&input, &output}) port->dims.insert(port->dims.begin(), kBatch);
    network.inputs = {input};
    network.outputs = {output};
    network.values[x].zeros = empty ? InputZeros{0.99, 0.995, 0.999, 0.9999} : InputZeros{0, 0, 0.5, 0.75};
    const auto plan = Make(network, {.precision = Precision::kFloat16, .tuning_budget = absl::Seconds(2)});
    ASSERT_NE(plan, nullptr);
    const LayerReport& layer = plan->report().layers[0];
    const auto row = std::ranges::find_if(layer.candidates, [&](const auto& of) { return of.kernel == kRow; });
    ASSERT_NE(row, layer.candidates.end());
    EXPECT_TRUE(row->measured);
    microseconds.push_back(row->microseconds[0]);
    EXPECT_FALSE(!empty && layer.RunsOn(kRow));
  }
  EXPECT_LT(microseconds[0] * 2, microseconds[1]) << "there is next to nothing to multiply";
}

// 120 GFLOP of 3x3 on data where all is there to multiply, ever less as more is zeroed, and on such where nothing is.
TEST_F(CudaChoiceTest, SparseInputsWinFromSoManyZerosOn) {
  testing::NetworkBuilder b(3, 0);
  const int x = b.Value("x", 512, 28, 28);
  b.Conv(x, 2048, SquareWindow(3, 1, 1), 0.9, testing::kRelu);
  Network network = b.Finish();
  const int64_t elements = 8 * network.values[x].elements();
  pack::SeenValues seen;
  std::vector<float>& rows = seen[x].rows;
  for (int64_t i = 0; i < elements; ++i) rows.push_back(static_cast<float>(i % 1000 + 1));
  const auto full = pack::SeeSparseInputs(network, seen, gpu_.get());
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->at(0).batch, 8);
  EXPECT_GT(full->at(0).dense_microseconds, 0.0);
  EXPECT_FALSE(full->at(0).wins());
  EXPECT_GE(full->at(0).wins_from.value_or(1.0), 0.5) << "the least share that is tried";
  std::ranges::fill(rows, 0.0f);
  rows[12345] = 1.0f;
  const auto empty = pack::SeeSparseInputs(network, seen, gpu_.get());
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_LT(empty->at(0).microseconds * 2, full->at(0).microseconds);
  const double zeros = 1.0 - 1.0 / static_cast<double>(elements);
  EXPECT_EQ(empty->at(0).wins_from, empty->at(0).wins() ? std::optional(zeros) : std::nullopt) << "its own, or none";
}

}  // namespace
}  // namespace swizzle
