// Rows of bytes against ONNX Runtime's order of rounding, on scales that single precision has not exactly: equal to the
// bit. Shapes and windows are kernel_rows_test.cc's.
#include "kernels/cpu/int8/conv_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/layout.h"
#include "tests/kernels/test_memory.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kRows = 37, kCols = 50, kPositions = 130;
constexpr int64_t kManyCols = 1310;  // which do not stay in a first cache
constexpr float kInputScale = 0.0173f, kResidualScale = 0.031f, kOutputScale = 0.0429f;
constexpr int32_t kInputZero = 77, kResidualZero = 201, kOutputZero = 33;

// One layer with 32-bit biases, as QLinearConv has them.
struct Layer {
  // block_rows: so many rows, and four columns, are zero together; 0: single weights.
  Layer(bool extremes, int64_t block_rows, int seed, int64_t columns)
      : cols(columns), random(seed), input(kPositions * cols), residual(kPositions * kRows) {
    for (int64_t i = 0; i < kRows * cols; ++i) {
      const int drawn = static_cast<int>(random() % 256) - 128;
      const int extreme = random() % 2 == 0 ? 127 : -128;
      const int64_t row = i / cols, col = i % cols, block = std::max<int64_t>(block_rows, 1),
                    corner = row / block * block * cols + col / 4 * 4;
      const bool zero = block_rows != 0 && corner != i ? weights[corner] == 0 : random() % 3 == 0;
      weights.push_back(static_cast<int8_t>(zero ? 0 : extremes ? extreme : drawn == 0 ? 1 : drawn));
    }
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(extremes ? 255 : random() % 256);
    for (uint8_t& byte : residual) byte = static_cast<uint8_t>(random() % 256);
    for (int64_t row = 0; row < kRows; ++row) {
      scales.push_back(0.001f + 0.0003f * static_cast<float>(row));
      biases.push_back(static_cast<int32_t>(random() % 20000) - 10000);
    }
  }

  Weight AsWeight() const {
    DenseMatrix matrix{kRows, cols, {}};
    for (int64_t i = 0; i < kRows * cols; ++i) matrix.values.push_back(weights[i] * scales[i / cols]);
    Weight weight{std::move(matrix), {}};
    for (int64_t row = 0; row < kRows; ++row) {
      weight.bias.push_back(static_cast<float>(biases[row]) * (kInputScale * scales[row]));
    }
    weight.quantisation = Quantisation{DType::kInt8, scales, {}};
    return weight;
  }

  // low: the least step, where there is a clamp.
  int Expected(int64_t row, int64_t position, bool adds, int low, int zero) const {
    int32_t sum = biases[row];
    for (int64_t c = 0; c < cols; ++c) sum += weights[row * cols + c] * (input[position * cols + c] - kInputZero);
    const float scale = kInputScale * scales[row] / kOutputScale;
    float value = static_cast<float>(sum) * scale;
    if (adds) {
      const float residual_scale = kResidualScale / kOutputScale;
      value = std::fma(static_cast<float>(sum), scale, -(static_cast<float>(kResidualZero) * residual_scale));
      value = std::fma(static_cast<float>(residual[position * kRows + row]), residual_scale, value);
    }
    return std::clamp(static_cast<int>(std::nearbyint(value)) + zero, low, 255);
  }

  int64_t cols;
  std::mt19937 random;
  std::vector<int8_t> weights;
  std::vector<uint8_t> input, residual;  // [position][channel]
  std::vector<float> scales;
  std::vector<int32_t> biases;
};

TestMemory InLayout(Backend& backend, const std::vector<uint8_t>& values, const Extent& extent, Layout layout) {
  TestMemory memory(backend, StorageBytes(extent, {layout, DType::kUint8}));
  for (int64_t p = 0; p < kPositions; ++p) {
    for (int64_t c = 0; c < extent.channels; ++c) {
      memory.host()[reference::ElementOffset(extent, layout, c, p)] =
          static_cast<std::byte>(values[p * extent.channels + c]);
    }
  }
  return memory;
}

Problem ProblemOf(bool adds, bool clamps, int64_t cols = kCols, int32_t zero = kOutputZero) {
  Problem problem{{Op::kConv, Window(), {}}, {kPositions, cols}, {kPositions, kRows}};
  problem.epilogue.residual = adds;
  if (clamps) problem.epilogue.low = 0;
  problem.inputs_as = {Quantised{DType::kUint8, kInputScale, kInputZero},
                       Quantised{DType::kUint8, kResidualScale, kResidualZero}};
  problem.epilogue.requantise = Quantised{DType::kUint8, kOutputScale, zero};
  return problem;
}

void ExpectBits(Backend& backend, Stream& stream, const Kernel& kernel, const Layer& layer, const Problem& general) {
  const Problem problem = AsRowSolves(kernel, general);
  ASSERT_TRUE(kernel.accepts(problem));
  const Weight weight = layer.AsWeight();
  ASSERT_TRUE(kernel.holds(weight, problem));
  const auto packed = kernel.prepare(weight, problem);
  ASSERT_TRUE(packed.ok());
  TestMemory input = InLayout(backend, layer.input, problem.input, problem.from.layout);
  TestMemory residual = InLayout(backend, layer.residual, problem.output, problem.to.layout);
  TestMemory output(backend, StorageBytes(problem.output, problem.to));
  TestMemory workspace(backend, kernel.workspace_bytes(problem));
  const Operand operands[] = {{input.data(), DType::kUint8}, {residual.data(), DType::kUint8}};
  KernelArgs args;
  args.problem = &problem;
  args.weight = packed->get();
  args.inputs = std::span(operands).first(problem.epilogue.residual ? 2 : 1);
  args.output = {output.data(), DType::kUint8};
  args.workspace = {workspace.data(), workspace.bytes()};
  kernel.run(args, stream);
  const int zero = problem.epilogue.requantise->zero_point, low = problem.epilogue.low == 0 ? zero : 0;
  for (int64_t p = 0; p < kPositions; ++p) {
    for (int64_t row = 0; row < kRows; ++row) {
      ASSERT_EQ(static_cast<int>(output.host()[reference::ElementOffset(problem.output, problem.to.layout, row, p)]),
                layer.Expected(row, p, problem.epilogue.residual, low, zero))
          << "row " << row << ", position " << p;
    }
  }
}

TEST(ConvBytesTest, EqualsOnnxRuntimeToTheBit) {
  const auto backend = NewCpuBackend();
  const auto stream = *backend->NewStream(1);
  int seen = 0;
  for (const Kernel& kernel : backend->kernels()) {
    const bool bytes = kernel.key.op == Op::kConv && kernel.key.output.dtype == DType::kUint8 &&
                       kernel.key.input == kernel.key.output && kernel.key.output.layout != Layout::kNchw;
    if (!bytes || (kernel.required_features & ~backend->features()) != 0) continue;
    ++seen;
    SCOPED_TRACE(kernel.name);
    for (const int turn : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
      SCOPED_TRACE(turn);
      const int64_t cols = turn % 4 == 3 || turn % 4 == 0 ? kManyCols : kCols;
      int64_t block_rows = kernel.name.find("_csr_") == std::string_view::npos ? 4 : 0;
      if (kernel.name.find("_block_") != std::string_view::npos && cols == kManyCols) block_rows = 1;
      ExpectBits(*backend, *stream, kernel, Layer(turn >= 4 && turn < 8, block_rows, turn, cols),
                 ProblemOf(turn % 2 == 1, turn % 4 >= 2, cols, turn >= 8 ? 0 : kOutputZero));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(seen, 4);
}

TEST(ConvBytesTest, TakesNoRealResidualAndNoneWithAFunction) {
  Problem problem = ProblemOf(true, false);
  problem.from = problem.to = {Layout::kFullPanels, DType::kUint8};
  EXPECT_TRUE(AcceptsConvBytes(problem));
  problem.inputs_as[1] = {};
  EXPECT_FALSE(AcceptsConvBytes(problem));
  problem = ProblemOf(false, false);
  problem.from = problem.to = {Layout::kFullPanels, DType::kUint8};
  problem.epilogue.function = Function{FunctionKind::kSilu};
  EXPECT_TRUE(AcceptsConvBytes(problem));
  problem.epilogue.residual = true;
  problem.inputs_as[1] = problem.inputs_as[0];
  EXPECT_FALSE(AcceptsConvBytes(problem));
}

}  // namespace
}  // namespace swizzle::cpu
