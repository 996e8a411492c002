// How near the vectorised activation functions come to the exact ones, on every instruction set of this machine.
#include "kernels/cpu/elementwise/function.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference.h"

namespace swizzle::cpu {
namespace {

constexpr float kReach = 30;
constexpr int kSamples = 600'000;

// Even steps over [-kReach, kReach], and both signs of ever smaller numbers.
std::vector<float> Samples() {
  std::vector<float> samples;
  for (int i = 0; i <= kSamples; ++i) samples.push_back(kReach * (2.0f * static_cast<float>(i) / kSamples - 1));
  for (float small = 1; small > 1e-38f; small *= 0.9f) samples.insert(samples.end(), {small, -small});
  samples.push_back(0);
  return samples;
}

// Whether the row computes functions of FP32 in any order of elements here; those of bytes look the values up.
bool ComputesFloats(const Kernel& kernel, const Backend& backend) {
  return kernel.key.op == Op::kFunction && kernel.key.input == Storage{Layout::kNchw, DType::kFloat32} &&
         (kernel.required_features & ~backend.features()) == 0;
}

std::vector<float> Results(const Kernel& kernel, FunctionKind kind, const std::vector<float>& samples, Backend& backend,
                           const Epilogue& epilogue = {}) {
  const auto buffer = *backend.Allocate(samples.size() * sizeof(float));
  std::memcpy(buffer->data(), samples.data(), samples.size() * sizeof(float));
  Problem problem;
  problem.SetOp(Op::kFunction);
  problem.input = problem.output = {1, static_cast<int64_t>(samples.size())};
  problem.function().kind = kind;
  problem.epilogue = epilogue;
  const Operand inputs[] = {{buffer->data(), DType::kFloat32}};
  KernelArgs args;
  args.problem = &problem;
  args.inputs = inputs;
  args.output = {buffer->data(), DType::kFloat32};
  kernel.run(args, **backend.NewStream(1));
  std::vector<float> results(samples.size());
  std::memcpy(results.data(), buffer->data(), results.size() * sizeof(float));
  return results;
}

class FunctionAccuracyTest : public ::testing::TestWithParam<FunctionKind> {};

TEST_P(FunctionAccuracyTest, IsNearTheExactFunction) {
  const auto backend = NewCpuBackend();
  const std::vector<float> samples = Samples();
  int rows = 0;
  for (const Kernel& kernel : backend->kernels()) {
    if (!ComputesFloats(kernel, *backend)) continue;
    ++rows;
    const std::vector<float> results = Results(kernel, GetParam(), samples, *backend);
    for (size_t i = 0; i < samples.size(); ++i) {
      const double exact = reference::ApplyFunction({GetParam(), 0, 0}, samples[i]);
      ASSERT_LE(std::abs(results[i] - exact), 1e-6 * std::max(1.0f, std::abs(samples[i])))
          << kernel.name << " of " << samples[i] << " is " << results[i] << ", not " << exact;
    }
  }
  EXPECT_GT(rows, 0);
}

// Clamped or not, as ONNX Runtime does.
TEST_P(FunctionAccuracyTest, KeepsWhatIsNoNumber) {
  const auto backend = NewCpuBackend();
  const std::vector<float> samples(35, std::nanf(""));
  Epilogue clamp;
  clamp.low = 0;
  clamp.high = 6;
  for (const Kernel& kernel : backend->kernels()) {
    if (!ComputesFloats(kernel, *backend)) continue;
    for (const Epilogue& epilogue : {Epilogue(), clamp}) {
      for (const float result : Results(kernel, GetParam(), samples, *backend, epilogue)) {
        ASSERT_TRUE(std::isnan(result)) << kernel.name << " " << result;
      }
    }
  }
}

TEST(GeluTest, KeepsWhatIsNoNumberAndEndsAtZero) {
  const auto backend = NewCpuBackend();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // As many as a vector has, and more: the last ones go another way.
  std::vector<float> samples;
  for (int i = 0; i < 9; ++i) samples.insert(samples.end(), {std::nanf(""), kInfinity, -kInfinity});
  for (const Kernel& kernel : backend->kernels()) {
    if (!ComputesFloats(kernel, *backend)) continue;
    const std::vector<float> results = Results(kernel, FunctionKind::kGelu, samples, *backend);
    for (size_t i = 0; i < results.size(); i += 3) {
      EXPECT_TRUE(std::isnan(results[i])) << kernel.name << " " << results[i];
      EXPECT_EQ(results[i + 1], kInfinity) << kernel.name;
      EXPECT_EQ(results[i + 2], 0.0f) << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FunctionAccuracyTest,
                         ::testing::Values(FunctionKind::kSigmoid, FunctionKind::kSilu, FunctionKind::kTanh,
                                           FunctionKind::kGelu, FunctionKind::kGeluTanh),
                         [](const auto& kind) { return std::string(FunctionKindName(kind.param)); });

}  // namespace
}  // namespace swizzle::cpu
