#include "kernels/cpu/tokens/attention_bfloat16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/runtime/targets.h"
#include "kernels/reference/reference.h"

namespace swizzle::cpu {
namespace {

constexpr Storage kPanels = {Layout::kPanels, DType::kFloat32};

// Matrices [tokens, channels] of queries, keys and values, and sequences of these lengths.
struct Case {
  std::vector<int32_t> lengths;
  int32_t heads = 1;
  int64_t head_channels = 32;
  float scale = 0.17f;
  std::vector<std::vector<float>> inputs = {};

  int64_t tokens() const {
    int64_t sum = 0;
    for (const int32_t length : lengths) sum += length;
    return sum;
  }
  Problem problem() const {
    const Extent extent{tokens(), heads * head_channels};
    Problem made{{Op::kAttention, {}, {}}, extent, extent};
    made.SetOp(Op::kAttention);
    made.attention() = {heads, scale};
    made.from = made.to = kPanels;
    return made;
  }
};

class AttentionBfloat16Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if ((DetectFeatures() & kAvx512Bf16) == 0) GTEST_SKIP() << "not on this processor";
  }

  static std::vector<float> Drawn(const Case& made, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<float> drawn(made.problem().input.positions() * made.problem().input.channels);
    for (float& value : drawn) value = normal(random);
    return drawn;
  }
  static Case WithDrawn(Case made) {
    std::mt19937 random(7);
    for (int i = 0; i < 3; ++i) made.inputs.push_back(Drawn(made, random));
    return made;
  }

  // Rows of tokens in panels, and back.
  static int64_t PlaceOf(const PanelGrid& grid, int64_t channels, int64_t token, int64_t channel) {
    const int64_t panel = grid.PanelOf(token);
    return grid.Begin(panel) * channels + channel * grid.Width(panel) + token - grid.Begin(panel);
  }

  static std::vector<float> Run(const Case& made) {
    const std::unique_ptr<Backend> backend = NewCpuBackend();
    const std::unique_ptr<HostStream> stream = *std::get<HostBackend*>(backend->kind())->NewHostStream(1);
    const Problem problem = made.problem();
    const PanelGrid grid(problem.input.batch);
    const int64_t channels = problem.input.channels;
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Operand> operands;
    for (const std::vector<float>& input : made.inputs) {
      buffers.push_back(*backend->Allocate(StorageBytes(problem.input, kPanels)));
      auto* const panels = reinterpret_cast<float*>(buffers.back()->data());
      for (int64_t i = 0; i < problem.input.batch * channels; ++i) {
        panels[PlaceOf(grid, channels, i / channels, i % channels)] = input[i];
      }
      operands.push_back({buffers.back()->data(), DType::kFloat32});
    }
    const auto output = *backend->Allocate(StorageBytes(problem.output, kPanels));
    const auto workspace = *backend->Allocate(AttentionBfloat16WorkspaceBytes(problem));
    std::vector<int32_t> begins = {0};
    for (const int32_t length : made.lengths) begins.push_back(begins.back() + length);
    const std::vector<int32_t> positions(problem.input.batch);
    const Sequences sequences{begins, positions, {}};
    AttentionBfloat16({.problem = &problem,
                       .inputs = operands,
                       .output = {output->data(), DType::kFloat32},
                       .workspace = {workspace->data(), workspace->bytes()},
                       .sequences = &sequences},
                      *stream);
    std::vector<float> rows(problem.input.batch * channels);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      rows[i] = reinterpret_cast<const float*>(output->data())[PlaceOf(grid, channels, at / channels, at % channels)];
    }
    return rows;
  }

  static std::vector<double> Expected(const Case& made) {
    std::vector<int32_t> begins = {0};
    for (const int32_t length : made.lengths) begins.push_back(begins.back() + length);
    const std::vector<int32_t> positions(made.tokens());
    const Sequences sequences{begins, positions, {}};
    return reference::Solve(made.problem(), nullptr, made.inputs, &sequences);
  }
};

// A single key's power is 1 where its score is whole.
TEST_F(AttentionBfloat16Test, ValuesAreRoundedToTheNearestTiesToEven) {
  Case made = WithDrawn({.lengths = std::vector<int32_t>(40, 1)});
  std::ranges::fill(made.inputs[0], 0.0f);
  const float below = 1.0f + 0x1p-8f, above = 1.0f + 0x3p-8f;  // ties
  made.inputs[2][0] = below, made.inputs[2][1] = above, made.inputs[2][2] = std::nextafter(below, 2.0f);
  const std::vector<float> actual = Run(made);
  EXPECT_EQ(actual[0], 1.0f);
  EXPECT_EQ(actual[1], 1.0f + 0x1p-6f);
  EXPECT_EQ(actual[2], 1.0f + 0x1p-7f);
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i], FloatOfBfloat16(Bfloat16OfFloat(made.inputs[2][i]))) << i;
  }
}

// Of operands in FP32, at MiniLM's sizes: rounding them costs more than rounding powers.
TEST_F(AttentionBfloat16Test, ErrorsOfDrawnOperandsAreAsStated) {
  const Case made = WithDrawn({.lengths = {128, 77, 301}, .heads = 12});
  const std::vector<float> actual = Run(made);
  const std::vector<double> expected = Expected(made);
  double noise = 0, signal = 0, largest = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    noise += std::pow(actual[i] - expected[i], 2);
    signal += std::pow(expected[i], 2);
    largest = std::max(largest, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LT(std::sqrt(noise / signal), 4e-3);
  EXPECT_LT(largest, 1e-2);
}

TEST_F(AttentionBfloat16Test, ASequenceHasTheSameBitsAloneAndInABatch) {
  const Case batch = WithDrawn({.lengths = {5, 131, 1, 64, 43, 300}, .heads = 2, .head_channels = 33, .scale = 2.0f});
  const std::vector<float> together = Run(batch);
  const int64_t channels = batch.problem().input.channels;
  int64_t first = 0;
  for (const int32_t length : batch.lengths) {
    Case alone = batch;
    alone.lengths = {length};
    for (std::vector<float>& input : alone.inputs) {
      input = {input.begin() + first * channels, input.begin() + (first + length) * channels};
    }
    const std::vector<float> actual = Run(alone);
    EXPECT_TRUE(std::equal(actual.begin(), actual.end(), together.begin() + first * channels)) << length;
    first += length;
  }
}

}  // namespace
}  // namespace swizzle::cpu
