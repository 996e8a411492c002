// Depthwise and pooling rows of bytes against each other, to the bit: how a panel's windows are planned differs by
// target, what they read does not. Roundings are conv_bytes_test.cc's, small shapes kernel_rows_test.cc's.
#include "kernels/cpu/int8/window_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/test_memory.h"

namespace swizzle::cpu {
namespace {

struct Plane {
  int64_t batch, channels, size;
  int32_t kernel, stride, dilation, pad;
};

constexpr Plane kPlanes[] = {
    {1, 72, 64, 3, 2, 1, 1},    // rows of the plane begin where panels do
    {1, 24, 128, 3, 2, 1, 1},   // the same, a panel further on
    {1, 130, 28, 3, 2, 1, 1},   // several rows of outputs within a vector
    {3, 40, 14, 3, 2, 1, 1},    // several images within a panel
    {2, 9, 7, 3, 2, 1, 1},      // fewer channels than go together
    {1, 24, 56, 5, 2, 1, 2},    // two quads a row
    {1, 24, 45, 3, 3, 1, 0},    // nothing outside
    {1, 24, 40, 3, 2, 2, 2},    // taps apart
    {1, 24, 64, 3, 1, 23, 23},  // too far apart to be planned
    {1, 70, 30, 9, 2, 1, 4},    // too many quads
    {1, 100, 20, 3, 1, 1, 1},   // no stride
};

Problem ProblemOf(const Plane& plane, int threads) {
  Window window;
  window.kernel_h = window.kernel_w = plane.kernel;
  window.stride_h = window.stride_w = plane.stride;
  window.dilation_h = window.dilation_w = plane.dilation;
  window.pad_top = window.pad_left = window.pad_bottom = window.pad_right = plane.pad;
  const int64_t to = (plane.size + 2 * plane.pad - (plane.kernel - 1) * plane.dilation - 1) / plane.stride + 1;
  Problem problem{{Op::kDepthwiseConv, window, {}},
                  {plane.batch, plane.channels, plane.size, plane.size},
                  {plane.batch, plane.channels, to, to},
                  threads};
  problem.inputs_as = {Quantised{DType::kUint8, 0.02f, 77}};
  problem.epilogue.requantise = Quantised{DType::kUint8, 0.05f, 33};
  problem.from = problem.to = {Layout::kFullPanels, DType::kUint8};
  return problem;
}

Weight DrawWeight(const Problem& problem, std::mt19937& random) {
  const int64_t rows = problem.output.channels, taps = problem.window().taps();
  DenseMatrix matrix{rows, taps, {}};
  std::vector<float> scales;
  for (int64_t row = 0; row < rows; ++row) {
    scales.push_back(0.001f + 0.0001f * static_cast<float>(row));
    for (int64_t tap = 0; tap < taps; ++tap) {
      matrix.values.push_back(static_cast<float>(static_cast<int>(random() % 255) - 127) * scales.back());
    }
  }
  Weight weight{std::move(matrix), std::vector<float>(rows, 0.1f)};
  weight.quantisation = Quantisation{DType::kInt8, scales, {}};
  return weight;
}

std::vector<std::byte> Solve(Backend& backend, const Kernel& kernel, const Problem& problem, const Weight& weight,
                             TestMemory& input) {
  const auto stream = *backend.NewStream(problem.threads);
  std::unique_ptr<PackedWeight> packed;
  if (kernel.prepare != nullptr) packed = *kernel.prepare(weight, problem);
  TestMemory output(backend, StorageBytes(problem.output, problem.to));
  TestMemory workspace(backend, kernel.workspace_bytes(problem));
  const Operand operands[] = {{input.data(), DType::kUint8}};
  KernelArgs args;
  args.problem = &problem;
  args.weight = packed.get();
  args.inputs = operands;
  args.output = {output.data(), DType::kUint8};
  args.workspace = {workspace.data(), workspace.bytes()};
  kernel.run(args, *stream);
  // What fills the last panel is anything.
  std::vector<std::byte> bytes;
  for (int64_t position = 0; position < problem.output.positions(); ++position) {
    const int64_t panel = position / kMaxPanelWidth, lane = position % kMaxPanelWidth;
    for (int64_t channel = 0; channel < problem.output.channels; ++channel) {
      bytes.push_back(output.host()[(panel * problem.output.channels + channel) * kMaxPanelWidth + lane]);
    }
  }
  return bytes;
}

// All rows of a family.
void ExpectTargetsAgree(std::string_view family, const Problem& problem, const Weight& weight, std::mt19937& random) {
  const auto backend = NewCpuBackend();
  TestMemory input(*backend, StorageBytes(problem.input, problem.from));
  for (size_t i = 0; i < input.bytes(); ++i) input.host()[i] = static_cast<std::byte>(random() % 256);
  std::vector<std::byte> expected;
  int seen = 0;
  for (const bool is_base : {true, false}) {
    for (const Kernel& kernel : backend->kernels()) {
      if (kernel.family != family || (kernel.required_features & ~backend->features()) != 0) continue;
      if (kernel.name.ends_with("_base") != is_base) continue;
      const std::vector<std::byte> bytes = Solve(*backend, kernel, problem, weight, input);
      if (is_base) expected = bytes;
      EXPECT_TRUE(bytes == expected) << kernel.name;
      ++seen;
    }
  }
  EXPECT_GE(seen, 1);
}

TEST(WindowBytesTest, DepthwiseTargetsAgreeToTheBit) {
  std::mt19937 random(5);
  for (const Plane& plane : kPlanes) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << plane.channels << "x" << plane.size << ", window " << plane.kernel
                                        << ", stride " << plane.stride << ", " << threads << " threads");
      const Problem problem = ProblemOf(plane, threads);
      ASSERT_TRUE(AcceptsDepthwiseBytes(problem));
      ExpectTargetsAgree("depthwise_dense_u8", problem, DrawWeight(problem, random), random);
    }
  }
}

constexpr Plane kPooled[] = {
    {1, 64, 112, 3, 2, 1, 1},  // ResNet-50's
    {2, 20, 30, 2, 2, 1, 0},   // several images within a panel
    {1, 9, 200, 3, 2, 1, 1},   // several vectors a row, the last one short
    {1, 5, 70, 5, 1, 1, 2},    // a few rows at a time
    {1, 3, 2500, 3, 2, 1, 1},  // one row at a time
    {1, 8, 40, 4, 70, 1, 3},   // outputs too far apart to be read together
};

TEST(WindowBytesTest, MaxPoolTargetsAgreeToTheBit) {
  std::mt19937 random(6);
  std::vector<Plane> planes(std::begin(kPlanes), std::end(kPlanes));
  planes.insert(planes.end(), std::begin(kPooled), std::end(kPooled));
  for (const Plane& plane : planes) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(::testing::Message() << plane.channels << "x" << plane.size << ", window " << plane.kernel
                                        << ", stride " << plane.stride << ", " << threads << " threads");
      Problem problem = ProblemOf(plane, threads);
      problem.op = Op::kMaxPool;
      problem.epilogue.requantise = problem.inputs_as[0];
      ASSERT_TRUE(AcceptsMaxPoolBytes(problem));
      ExpectTargetsAgree("max_pool_u8", problem, {}, random);
    }
  }
}

}  // namespace
}  // namespace swizzle::cpu
