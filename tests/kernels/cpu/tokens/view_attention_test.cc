#include "kernels/cpu/tokens/view_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Sizes {
  int64_t sequences, heads, queries, keys, channels, value_channels;
};

std::vector<float> Drawn(int64_t count, int step) {
  std::vector<float> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i) {
    drawn[i] = static_cast<float>(static_cast<int>(i * static_cast<size_t>(step) % 29) - 14) / 9;
  }
  return drawn;
}

// Matrices of tokens whose heads stand side by side, as a layer makes them.
template <typename Float>
TokenView<Float> SideBySide(Float* data, int64_t tokens, int64_t heads, int64_t channels) {
  return {data, tokens * heads * channels, channels, heads * channels};
}

// One query's sums of values, by their definition.
std::vector<double> Expected(const ViewAttention& call, int64_t sequence, int64_t head, int64_t query) {
  const auto at = [&](const TokenView<const float>& view, int64_t token) {
    return view.data + sequence * view.sequence_stride + head * view.head_stride + token * view.token_stride;
  };
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t key = 0; key < call.key_count; ++key) {
    double score = 0;
    for (int64_t c = 0; c < call.channels; ++c) score += double{at(call.queries, query)[c]} * at(call.keys, key)[c];
    score = score * call.scale + (call.bias.data == nullptr ? 0.0 : at(call.bias, query)[key]);
    scores.push_back(score);
    largest = std::max(largest, score);
  }
  std::vector<double> sums(static_cast<size_t>(call.value_channels));
  if (std::isinf(largest)) return sums;
  double total = 0;
  for (const double score : scores) total += std::exp(score - largest);
  for (int64_t key = 0; key < call.key_count; ++key) {
    const double weight = std::exp(scores[static_cast<size_t>(key)] - largest) / total;
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += weight * at(call.values, key)[c];
  }
  return sums;
}

using Attend = decltype(&AttendViews);

// In each instruction set that this machine has.
std::vector<Attend> Functions() {
  std::vector<Attend> functions = {AttendViews, N_EMU128::AttendViews};
  if (DetectFeatures() & kAvx2) functions.push_back(N_AVX2::AttendViews);
  return functions;
}

void ExpectAttends(ViewAttention call) {
  constexpr float kUntouched = 77.0f;
  std::vector<double> expected;
  for (int64_t row = 0; row < call.sequences * call.query_count; ++row) {
    for (int64_t head = 0; head < call.heads; ++head) {
      const auto sums = Expected(call, row / call.query_count, head, row % call.query_count);
      expected.insert(expected.end(), sums.begin(), sums.end());
    }
  }
  for (const Attend attend : Functions()) {
    std::vector<float> output(expected.size() + 16, kUntouched);
    call.output = SideBySide(output.data(), call.query_count, call.heads, call.value_channels);
    CpuStream stream(2);
    std::vector<std::byte> memory(ViewAttentionWorkspaceBytes(call, stream.threads()) + kBufferAlignment);
    void* start = memory.data();
    size_t space = memory.size();
    std::align(kBufferAlignment, space - kBufferAlignment, start, space);
    attend(call, {static_cast<std::byte*>(start), memory.size() - kBufferAlignment}, stream);
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(output[i], expected[i], 2e-5) << i;
    for (size_t i = output.size() - 16; i < output.size(); ++i) EXPECT_EQ(output[i], kUntouched);
  }
}

class ViewAttentionTest : public ::testing::TestWithParam<Sizes> {
 protected:
  ViewAttentionTest() {
    const Sizes& s = GetParam();
    q_ = Drawn(s.sequences * s.queries * s.heads * s.channels, 7);
    k_ = Drawn(s.sequences * s.keys * s.heads * s.channels, 11);
    v_ = Drawn(s.sequences * s.keys * s.heads * s.value_channels, 5);
    call_ = {.sequences = s.sequences,
             .heads = s.heads,
             .query_count = s.queries,
             .key_count = s.keys,
             .channels = s.channels,
             .value_channels = s.value_channels,
             .scale = 0.3f,
             .queries = SideBySide<const float>(q_.data(), s.queries, s.heads, s.channels),
             .keys = SideBySide<const float>(k_.data(), s.keys, s.heads, s.channels),
             .values = SideBySide<const float>(v_.data(), s.keys, s.heads, s.value_channels),
             .output = {},
             .bias = {}};
  }

  std::vector<float> q_, k_, v_;
  ViewAttention call_;
};

TEST_P(ViewAttentionTest, AttendsToAllKeys) { ExpectAttends(call_); }

TEST_P(ViewAttentionTest, AddsABiasForEachPair) {
  std::vector<float> bias = Drawn(call_.heads * call_.query_count * call_.key_count, 13);
  for (size_t i = 0; i < bias.size(); i += 3) bias[i] = i % 2 == 0 ? kNever : std::numeric_limits<float>::lowest();
  call_.bias = {bias.data(), 0, call_.query_count * call_.key_count, call_.key_count};
  ExpectAttends(call_);
}

TEST_P(ViewAttentionTest, AddsABiasForEachKey) {
  std::vector<float> bias = Drawn(call_.sequences * call_.key_count, 3);
  bias.back() = kNever;
  call_.bias = {bias.data(), call_.key_count, 0, 0};
  ExpectAttends(call_);
}

// Sums are as large as the lowest number leaves them: as if there were no bias, but for what rounding takes.
TEST_P(ViewAttentionTest, TakesTheMeanWhereEveryKeyHasTheLowestOrHighestBias) {
  for (const float number : {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()}) {
    const std::vector<float> bias(static_cast<size_t>(call_.key_count), number);
    call_.bias = {bias.data(), 0, 0, 0};
    call_.scale = 0.0f;
    ExpectAttends(call_);
  }
}

TEST_P(ViewAttentionTest, GivesZerosToAQueryThatNoKeyIsLeftTo) {
  std::vector<float> bias(static_cast<size_t>(call_.query_count * call_.key_count));
  std::fill_n(bias.begin(), call_.key_count, kNever);
  call_.bias = {bias.data(), 0, 0, call_.key_count};
  ExpectAttends(call_);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ViewAttentionTest,
                         ::testing::Values(Sizes{1, 1, 1, 1, 1, 1}, Sizes{2, 3, 5, 7, 8, 8},
                                           Sizes{3, 2, 49, 49, 32, 32}, Sizes{1, 2, 150, 300, 64, 64},
                                           Sizes{1, 1, 257, 16, 36, 20}, Sizes{2, 1, 64, 129, 5, 3}));

}  // namespace
}  // namespace swizzle::cpu
