// Plans whose activations are partly whole numbers: where a model gives values scales, rows that store them so are
// candidates, conversions come between, and kernels are told the scales.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/half.h"
#include "model_loader/plan/planner.h"
#include "tests/kernels/fake_backend.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

constexpr Storage kReal = {Layout::kNchw, DType::kFloat32};
constexpr Storage kWhole = {Layout::kNchw, DType::kUint8};

float RealOf(const Operand& operand, int64_t i) {
  return operand.scale * static_cast<float>(operand.As<uint8_t>()[i] - operand.zero_point);
}
uint8_t WholeOf(const MutableOperand& operand, float value) {
  const float steps = std::nearbyint(value / operand.scale) + static_cast<float>(operand.zero_point);
  return static_cast<uint8_t>(std::clamp(steps, 0.0f, 255.0f));
}

bool AcceptsAll(const Problem&) { return true; }
int64_t Elements(const KernelArgs& args) { return LayoutElements(args.problem->output, Layout::kNchw); }

void Quantise(const KernelArgs& args, Stream&) {
  for (int64_t i = 0; i < Elements(args); ++i)
    args.Output<uint8_t>()[i] = WholeOf(args.output, args.Input<float>(0)[i]);
}
void Dequantise(const KernelArgs& args, Stream&) {
  for (int64_t i = 0; i < Elements(args); ++i) args.Output<float>()[i] = RealOf(args.inputs[0], i);
}
void AddWholes(const KernelArgs& args, Stream&) {
  for (int64_t i = 0; i < Elements(args); ++i) {
    args.Output<uint8_t>()[i] = WholeOf(args.output, RealOf(args.inputs[0], i) + RealOf(args.inputs[1], i));
  }
}
void ClampReals(const KernelArgs& args, Stream&) {
  const Epilogue& epilogue = args.problem->epilogue;
  for (int64_t i = 0; i < Elements(args); ++i) {
    args.Output<float>()[i] = std::clamp(args.Input<float>(0)[i], epilogue.low, epilogue.high);
  }
}

constexpr KernelKey Key(Op op, Storage input, Storage output) {
  return {op, Format::kNone, DType::kFloat32, input, output};
}
// Sums are of whole numbers only, clamps of real ones.
constexpr Kernel kTable[] = {
    {"quantise", Key(Op::kConvertLayout, kReal, kWhole), 0, AcceptsAll, nullptr, nullptr, Quantise},
    {"dequantise", Key(Op::kConvertLayout, kWhole, kReal), 0, AcceptsAll, nullptr, nullptr, Dequantise},
    {"add_u8", Key(Op::kAdd, kWhole, kWhole), 0, AcceptsAll, nullptr, nullptr, AddWholes},
    {"clamp_f32", Key(Op::kActivation, kReal, kReal), 0, AcceptsAll, nullptr, nullptr, ClampReals},
};

// y = clamp(a + b)
Network SumOfTwo() {
  testing::NetworkBuilder builder(1, 0);
  const int a = builder.Value("a", 8), b = builder.Value("b", 8);
  const int sum = builder.Pointwise(Op::kAdd, {a, b});
  const int y = builder.Pointwise(Op::kActivation, {sum}, testing::kRelu6);
  const NetworkPort inputs[] = {builder.Port(a, "a"), builder.Port(b, "b")}, output = builder.Port(y, "y");
  Network network = builder.Finish();
  network.inputs = {inputs[0], inputs[1]};
  network.outputs = {output};
  network.values[a].quantisation = Quantisation{DType::kUint8, {0.25f}, {10}};
  network.values[b].quantisation = Quantisation{DType::kUint8, {0.5f}, {20}};
  network.values[sum].quantisation = Quantisation{DType::kUint8, {0.75f}, {30}};
  return network;
}

PlanOptions Estimated() {
  PlanOptions options;
  options.threads = 1;
  options.tuning_budget = absl::ZeroDuration();
  return options;
}

TEST(MixedTypesPlanTest, WholeNumbersStandBetweenRealOnes) {
  FakeBackend backend(kTable, 0);
  const Network network = SumOfTwo();
  ASSERT_TRUE(network.Validate().ok()) << network.Validate();
  const auto plan = MakePlan(network, backend, Estimated());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->report().conversions, 3);
  const auto runner = *(*plan)->NewRunner({});
  const std::vector<float> a = {1, 2, 3, -1, 0, 0.25f, -2.5f, 4}, b = {1, 1, 1, 3, 0, 0.5f, -2, -8};
  std::ranges::copy(a, runner->Input(0, 1).begin());
  std::ranges::copy(b, runner->Input(1, 1).begin());
  ASSERT_TRUE(runner->Run(1).ok());
  const auto output = runner->Output(0, 1);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(output[i], std::clamp(a[i] + b[i], 0.0f, 6.0f), 0.376f) << "half a step of the sum, at " << i;
  }
}

constexpr Storage kPanels = {Layout::kPanels, DType::kFloat32};
constexpr Storage kHalves = {Layout::kPanels, DType::kBFloat16};

void AddHalves(const KernelArgs& args, Stream&) {
  for (int64_t i = 0; i < Elements(args); ++i) {
    const float sum = FloatOfBfloat16(args.Input<uint16_t>(0)[i]) + FloatOfBfloat16(args.Input<uint16_t>(1)[i]);
    args.Output<uint16_t>()[i] = Bfloat16OfFloat(sum);
  }
}
// One image of one position: both layouts are the same.
void Round(const KernelArgs& args, Stream&) {
  for (int64_t i = 0; i < Elements(args); ++i) args.Output<uint16_t>()[i] = Bfloat16OfFloat(args.Input<float>(0)[i]);
}
void Widen(const KernelArgs& args, Stream&) {
  for (int64_t i = 0; i < Elements(args); ++i) args.Output<float>()[i] = FloatOfBfloat16(args.Input<uint16_t>(0)[i]);
}
void CopyReals(const KernelArgs& args, Stream&) {
  std::copy_n(args.Input<float>(0), Elements(args), args.Output<float>());
}

// Sums in bfloat16 only, clamps of FP32 only, both in panels.
constexpr Kernel kHalfTable[] = {
    {"round", Key(Op::kConvertLayout, kReal, kHalves), 0, AcceptsAll, nullptr, nullptr, Round},
    {"widen_panels", Key(Op::kConvertLayout, kHalves, kPanels), 0, AcceptsAll, nullptr, nullptr, Widen},
    {"leave", Key(Op::kConvertLayout, kPanels, kReal), 0, AcceptsAll, nullptr, nullptr, CopyReals},
    {"add_bf16", Key(Op::kAdd, kHalves, kHalves), 0, AcceptsAll, nullptr, nullptr, AddHalves},
    {"clamp_f32", Key(Op::kActivation, kPanels, kPanels), 0, AcceptsAll, nullptr, nullptr, ClampReals},
};

TEST(MixedTypesPlanTest, APlanInHalfPrecisionTakesSingleWhereNothingElseRuns) {
  FakeBackend backend(kHalfTable, 0);
  Network network = SumOfTwo();
  for (NetworkValue& value : network.values) value.quantisation.reset();
  PlanOptions options = Estimated();
  options.precision = Precision::kBFloat16;
  const auto plan = MakePlan(network, backend, options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ((*plan)->report().conversions, 4) << "two to halves, one to floats in panels, one to the result";
  const auto runner = *(*plan)->NewRunner({});
  const std::vector<float> a = {1, 2, 3, -1, 0, 0.25f, -2.5f, 1 / 3.0f}, b = {1, 1, 1, 3, 0, 0.5f, -2, 1};
  std::ranges::copy(a, runner->Input(0, 1).begin());
  std::ranges::copy(b, runner->Input(1, 1).begin());
  ASSERT_TRUE(runner->Run(1).ok());
  const auto output = runner->Output(0, 1);
  for (size_t i = 0; i < a.size(); ++i) {
    const float rounded = FloatOfBfloat16(Bfloat16OfFloat(a[i])) + FloatOfBfloat16(Bfloat16OfFloat(b[i]));
    EXPECT_EQ(output[i], std::clamp(FloatOfBfloat16(Bfloat16OfFloat(rounded)), 0.0f, 6.0f)) << i;
  }
  EXPECT_EQ(MakePlan(network, backend, Estimated()).status().code(), StatusCode::kUnimplemented)
      << "a plan in FP32 never rounds";
}

TEST(MixedTypesPlanTest, ValuesWithoutScalesStayReal) {
  FakeBackend backend(kTable, 0);
  for (const int without : {0, 1, 2}) {
    Network network = SumOfTwo();
    network.values[without].quantisation.reset();
    EXPECT_EQ(MakePlan(network, backend, Estimated()).status().code(), StatusCode::kUnimplemented) << without;
  }
  Network channels = SumOfTwo();
  channels.values[2].quantisation->scales.assign(8, 0.75f);
  channels.values[2].quantisation->zero_points.clear();
  EXPECT_EQ(MakePlan(channels, backend, Estimated()).status().code(), StatusCode::kUnimplemented)
      << "kernels know of one scale a value";
}

}  // namespace
}  // namespace swizzle
