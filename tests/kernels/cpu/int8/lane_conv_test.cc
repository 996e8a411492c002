// Weights in lanes, and their convolution where columns are cut into parts and the last channels fill no vector. Small
// shapes are kernel_rows_test.cc's, rounding is conv_bytes_test.cc's.
#include "kernels/cpu/int8/lane_conv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/int8/lane_weight.h"
#include "tests/kernels/test_memory.h"

namespace swizzle::cpu {
namespace {

ByteWeight DrawnWeight(int64_t rows, int64_t cols, double density) {
  std::mt19937 random(7);
  ByteWeight weight;
  weight.rows = rows;
  weight.cols = cols;
  weight.entries.resize(rows);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      const auto value = static_cast<int8_t>(static_cast<int>(random() % 256) - 128);
      if (value != 0 && random() % 1000 < density * 1000)
        weight.entries[row].push_back({static_cast<int32_t>(col), value});
    }
    weight.start.push_back(static_cast<int32_t>(row));
    weight.scale.push_back(static_cast<float>(row) + 0.5f);
  }
  return weight;
}

// The header's, with nothing in the other lanes.
TEST(LaneWeightTest, WorkedExample) {
  ByteWeight bytes = DrawnWeight(2, 96, 0);
  bytes.entries = {{{1, 10}, {2, 20}, {70, -30}}, {{3, 1}, {40, 2}, {80, 3}, {90, 4}, {91, 5}, {95, 6}}};
  const LaneWeight weight(bytes, 96, 99);
  ASSERT_EQ(weight.chunks(), 1);
  const LaneChunk chunk = weight.Chunk(0, 0);
  ASSERT_EQ(chunk.counts[0], 2u);
  EXPECT_EQ(chunk.windows[0], 0);
  EXPECT_EQ(chunk.windows[1], 1);
  EXPECT_EQ((std::vector<int>(chunk.steps[0].bytes.begin(), chunk.steps[0].bytes.begin() + 8)),
            (std::vector<int>{1, 2, 0, 0, 3, 40, 0, 0}));
  EXPECT_EQ((std::vector<int>(chunk.steps[1].bytes.begin(), chunk.steps[1].bytes.begin() + 8)),
            (std::vector<int>{38, 0, 0, 0, 48, 58, 59, 63}));
  EXPECT_EQ((std::vector<int>(chunk.steps[1].weights.begin(), chunk.steps[1].weights.begin() + 8)),
            (std::vector<int>{-30, 0, 0, 0, 3, 4, 5, 6}));
}

// Where each weight of a chunk's row stands when all steps are undone.
std::map<int32_t, int8_t> EntriesOf(const LaneWeight& weight, int64_t row, int64_t channels) {
  std::map<int32_t, int8_t> found;
  for (int64_t part = 0; part < weight.parts(); ++part) {
    const LaneChunk chunk = weight.Chunk(part, row / LaneChunk::kRows);
    const auto* const end = chunk.row_of_lane + chunk.rows;
    const int64_t at = std::find(chunk.row_of_lane, end, row % LaneChunk::kRows) - chunk.row_of_lane;
    EXPECT_EQ(chunk.start[at], row);
    EXPECT_EQ(chunk.scale[at], static_cast<float>(row) + 0.5f);
    int64_t step = 0;
    for (int64_t group = 0; group < at / LaneChunk::kLanes; ++group) step += chunk.counts[group];
    const int64_t steps = step + chunk.counts[at / LaneChunk::kLanes];
    for (; step < steps; ++step) {
      for (int64_t byte = at % LaneChunk::kLanes * 4; byte < at % LaneChunk::kLanes * 4 + 4; ++byte) {
        if (chunk.steps[step].weights[byte] == 0) continue;
        const int64_t unit = weight.FirstUnit(part) + chunk.windows[step], filled = RoundUp(channels, 32);
        const int64_t column = unit * LaneWeight::kUnit + chunk.steps[step].bytes[byte];
        EXPECT_TRUE(
            found.emplace(column / filled * channels + column % filled, chunk.steps[step].weights[byte]).second);
      }
    }
  }
  return found;
}

TEST(LaneWeightTest, EveryWeightStandsOnce) {
  for (const int64_t channels : {7, 32, 50, 64, 130}) {
    for (const int64_t most_units : {2, 3, 100}) {
      const ByteWeight bytes = DrawnWeight(75, channels * 9, channels == 50 ? 0.02 : 0.3);
      const LaneWeight weight(bytes, channels, most_units);
      for (int64_t row = 0; row < bytes.rows; ++row) {
        std::map<int32_t, int8_t> expected;
        for (const ByteWeight::Entry& entry : bytes.entries[row]) expected.emplace(entry.column, entry.value);
        ASSERT_EQ(EntriesOf(weight, row, channels), expected) << row << " of " << channels;
      }
    }
  }
}

struct Case {
  int64_t inputs, outputs, height, width;
  Window window;
  bool adds;
};

constexpr int32_t kZero = 5, kOutputZero = 9;
constexpr float kScale = 0.001f;

// Image, then place, of a window's tap; none outside.
int ByteAt(const Case& of, const std::vector<uint8_t>& input, int64_t y, int64_t x, int64_t channel) {
  if (y < 0 || y >= of.height || x < 0 || x >= of.width) return kZero;
  return input[(y * of.width + x) * of.inputs + channel];
}

void ExpectSums(Backend& backend, const Kernel& kernel, const Case& of, int threads) {
  const Window& window = of.window;
  const int64_t taps = window.taps(), cols = of.inputs * taps;
  const int64_t height = (of.height + window.pad_top + window.pad_bottom - window.kernel_h) / window.stride_h + 1;
  const int64_t width = (of.width + window.pad_left + window.pad_right - window.kernel_w) / window.stride_w + 1;
  Problem problem{{Op::kConv, window, {}}, {1, of.inputs, of.height, of.width}, {1, of.outputs, height, width}};
  problem.threads = threads;
  problem.epilogue.residual = of.adds;
  problem.inputs_as = {Quantised{DType::kUint8, 1.0f, kZero}, Quantised{DType::kUint8, 1.0f, 0}};
  problem.epilogue.requantise = Quantised{DType::kUint8, 1.0f, kOutputZero};
  problem = AsRowSolves(kernel, problem);
  ASSERT_TRUE(kernel.accepts(problem));
  std::mt19937 random(3);
  DenseMatrix matrix{of.outputs, cols, {}};
  std::vector<int> whole;
  for (int64_t i = 0; i < of.outputs * cols; ++i) {
    whole.push_back(random() % 5 == 0 ? static_cast<int>(random() % 255) - 127 : 0);
    matrix.values.push_back(static_cast<float>(whole.back()) * kScale);
  }
  Weight weight{std::move(matrix), {}};
  weight.quantisation = Quantisation{DType::kInt8, std::vector<float>(of.outputs, kScale), {}};
  const auto packed = kernel.prepare(weight, problem);
  ASSERT_TRUE(packed.ok());
  std::vector<uint8_t> in(problem.input.positions() * of.inputs), added(problem.output.positions() * of.outputs);
  for (uint8_t& byte : in) byte = static_cast<uint8_t>(random() % 256);
  for (uint8_t& byte : added) byte = static_cast<uint8_t>(random() % 64);
  TestMemory input(backend, in.size()), residual(backend, added.size()), output(backend, added.size());
  std::memcpy(input.host().data(), in.data(), in.size());
  std::memcpy(residual.host().data(), added.data(), added.size());
  TestMemory workspace(backend, kernel.workspace_bytes(problem));
  const Operand operands[] = {{input.data(), DType::kUint8}, {residual.data(), DType::kUint8}};
  KernelArgs args;
  args.problem = &problem;
  args.weight = packed->get();
  args.inputs = std::span(operands).first(of.adds ? 2 : 1);
  args.output = {output.data(), DType::kUint8};
  args.workspace = {workspace.data(), workspace.bytes()};
  const auto stream = *backend.NewStream(threads);
  kernel.run(args, *stream);
  for (int64_t position = 0; position < height * width; ++position) {
    const int64_t y = position / width * window.stride_h - window.pad_top;
    const int64_t x = position % width * window.stride_w - window.pad_left;
    for (int64_t row = 0; row < of.outputs; ++row) {
      int sum = 0;
      for (int64_t col = 0; col < cols; ++col) {
        const int64_t tap = col % taps, channel = col / taps;
        const int weight_of = whole[row * cols + col];
        if (weight_of == 0) continue;
        const int64_t down = tap / window.kernel_w, right = tap % window.kernel_w;
        sum += weight_of * (ByteAt(of, in, y + down, x + right, channel) - kZero);
      }
      const int64_t at = position * of.outputs + row;
      float value = static_cast<float>(sum) * kScale;
      if (of.adds) value = std::fma(1.0f, added[at], value);
      const int expected = std::clamp(static_cast<int>(std::nearbyint(value)) + kOutputZero, 0, 255);
      ASSERT_EQ(static_cast<int>(output.host()[at]), expected) << "row " << row << ", position " << position;
    }
  }
}

TEST(LaneConvTest, AddsPartsOfWindows) {
  const auto backend = NewCpuBackend();
  const auto rows = backend->kernels();
  const auto row = std::ranges::find(rows, "conv_nhwc_csr_u8_vbmi", &Kernel::name);
  ASSERT_NE(row, rows.end());
  if ((row->required_features & ~backend->features()) != 0) GTEST_SKIP() << "not on this processor";
  const Window same = {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  Window halving = same;
  halving.stride_h = halving.stride_w = 2;
  const Case cases[] = {{64, 64, 7, 7, {}, true},         {320, 100, 6, 5, same, true}, {48, 70, 9, 8, same, false},
                        {256, 130, 10, 7, halving, true}, {2048, 16, 1, 1, {}, false},  {32, 70, 6, 5, {}, true},
                        {32, 64, 5, 5, {}, false},        {32, 33, 9, 8, {}, false},    {1100, 65, 5, 5, {}, true}};
  for (const Case& of : cases) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(of.inputs);
      ExpectSums(*backend, *row, of, threads);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace swizzle::cpu
