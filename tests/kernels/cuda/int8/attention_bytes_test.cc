// Sparse attention in whole numbers and its SDDMM, beside sums in 64 bits and attention in double precision of the same
// whole numbers. Skipped where there is no GPU that has products of bytes.
#include "kernels/cuda/int8/attention_bytes.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/runtime/device_array.h"
#include "tests/kernels/cuda/int8/rounded_attention.h"

namespace swizzle::cuda {
namespace {

bool HasProducts() {
  int count = 0, major = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return false;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  return major >= 8;
}

// Eights of queries share drawn keys; some have none, and one query of each eight lacks its last key.
AttentionPattern DrawPattern(int64_t tokens, double density, std::mt19937& random) {
  AttentionPattern pattern;
  pattern.tokens = tokens;
  pattern.row_offsets = {0};
  std::bernoulli_distribution kept(density);
  std::vector<uint32_t> keys;
  for (int64_t query = 0; query < tokens; ++query) {
    if (query % 8 == 0) {
      keys.clear();
      for (int64_t key = 0; key < tokens && query / 8 % 5 != 3; ++key) {
        if (kept(random)) keys.push_back(static_cast<uint32_t>(key));
      }
    }
    const size_t lacks = query % 8 == 5 && !keys.empty() ? 1 : 0;
    pattern.col_indices.insert(pattern.col_indices.end(), keys.begin(), keys.end() - static_cast<int64_t>(lacks));
    pattern.row_offsets.push_back(static_cast<uint32_t>(pattern.col_indices.size()));
  }
  return pattern;
}

// Where a query's score of a key lies within a head; the panels as the device has them.
class Places {
 public:
  explicit Places(const KeyPanels& pattern) {
    const BytePanels& panels = pattern.panels();
    panels_.resize(panels.count());
    columns_.resize(pattern.slots());
    EXPECT_EQ(cudaMemcpy(panels_.data(), panels.panels(), panels_.size() * sizeof(BytePanel), cudaMemcpyDeviceToHost),
              cudaSuccess);
    EXPECT_EQ(cudaMemcpy(columns_.data(), panels.columns(), columns_.size() * 2, cudaMemcpyDeviceToHost), cudaSuccess);
    masks_.resize(pattern.slots());
    EXPECT_EQ(cudaMemcpy(masks_.data(), pattern.masks(), masks_.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const BytePanel& panel : panels_) {
      for (uint32_t i = 0; i < panel.steps * 32; ++i) {
        const int64_t slot = int64_t{panel.step} * 32 + i;
        const int64_t key = columns_[slot / 32 * 32 + slot % 4 * 8 + slot % 32 / 4];
        for (int row = 0; row < 8; ++row) {
          if (masks_[slot] >> row & 1) visit(int64_t{panel.row} + row, key, slot * 8 + row);
        }
      }
    }
  }

 private:
  std::vector<BytePanel> panels_;
  std::vector<uint16_t> columns_;
  std::vector<uint8_t> masks_;
};

class AttentionBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasProducts()) GTEST_SKIP() << "no GPU with products of bytes";
  }
};

TEST(KeyPanelsTest, KnowsWhetherKeysAreShared) {
  EXPECT_TRUE(KeyPanels::AreShared(AttentionPattern::FromBand(1, 1, true)));
  EXPECT_TRUE(KeyPanels::AreShared(AttentionPattern::FromBand(1000, 200, false)));
  EXPECT_FALSE(KeyPanels::AreShared(AttentionPattern::FromBandAndRandom(2000, 1, 0.1, 7)));
}

TEST_F(AttentionBytesTest, SampledProductsAreExact) {
  for (const int bits : {4, 8, 16}) {
    for (const int head_dim : {64, 128, 256}) {
      std::mt19937 random(bits + head_dim);
      const HeadCounts counts = {2, 3, head_dim};
      // The last has panels of several steps, which warps share.
      const int64_t tokens = head_dim == 256 ? 300 : 77, numbers = counts.sequences * tokens * counts.channels();
      const AttentionPattern drawn = DrawPattern(tokens, head_dim == 256 ? 0.6 : 0.3, random);
      const auto pattern = *KeyPanels::Make(drawn);
      std::vector<int> q(numbers), k(numbers);
      const auto draw = [&] {
        return bits == 16 ? static_cast<int>(random() % 4096) - 2048
                          : static_cast<int>(random() % (1u << bits)) - (1 << (bits - 1));
      };
      for (int& value : q) value = draw();
      for (int& value : k) value = draw();
      std::vector<DeviceArray<uint8_t>> memory;
      const auto upload = [&](const std::vector<int>& values) {
        std::vector<uint8_t> low(bits == 4 ? values.size() / 2 : values.size()), high(low.size());
        for (size_t i = 0; i < values.size(); ++i) {
          if (bits == 4) {
            low[i / 2] |= static_cast<uint8_t>((values[i] & 15) << 4 * (i % 2));
          } else {
            low[i] = static_cast<uint8_t>(values[i] & 255), high[i] = static_cast<uint8_t>(values[i] >> 8);
          }
        }
        memory.push_back(*DeviceArray<uint8_t>::Upload(low));
        memory.push_back(*DeviceArray<uint8_t>::Upload(high));
        return WholeHeads{memory[memory.size() - 2].data(), memory.back().data()};
      };
      const WholeHeads device_q = upload(q), device_k = upload(k);
      const int64_t heads = int64_t{counts.sequences} * counts.heads;
      std::vector<int32_t> sums(heads * pattern->head_values());
      auto device_sums = *DeviceArray<int32_t>::Upload(sums);
      QueueSddmmBytes(*pattern, counts, bits, device_q, device_k, device_sums.data(), nullptr);
      ASSERT_EQ(cudaMemcpy(sums.data(), device_sums.data(), device_sums.bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
      int64_t seen = 0, wrong = 0;
      Places(*pattern).ForEach([&](int64_t query, int64_t key, int64_t place) {
        ++seen;
        for (int64_t head = 0; head < heads; ++head) {
          const int64_t first = head / counts.heads * tokens, channel = head % counts.heads * head_dim;
          int64_t sum = 0;
          for (int d = 0; d < head_dim; ++d) {
            sum += int64_t{q[(first + query) * counts.channels() + channel + d]} *
                   k[(first + key) * counts.channels() + channel + d];
          }
          const int32_t actual = sums[head * pattern->head_values() + place];
          if (actual != sum && ++wrong <= 3) {
            ADD_FAILURE() << bits << " bits, head dim " << head_dim << ", head " << head << ": (" << query << ", "
                          << key << ") is " << actual << ", not " << sum;
          }
        }
      });
      EXPECT_EQ(seen, drawn.nnz());
      EXPECT_EQ(wrong, 0);
    }
  }
}

void ExpectAttention(int head_dim, const AttentionBound& widths) {
  SCOPED_TRACE(::testing::Message() << "head dim " << head_dim << ", " << widths.bits.shares << "-"
                                    << widths.bits.operands << " bits");
  std::mt19937 random(head_dim);
  const HeadCounts counts = {2, 2, head_dim};
  const int64_t tokens = 1003, channels = counts.channels(), numbers = counts.sequences * tokens * channels;
  const AttentionPattern drawn = DrawPattern(tokens, 0.4, random);
  const auto pattern = *KeyPanels::Make(drawn);
  std::normal_distribution<float> normal;
  std::vector<__half> values[3];
  std::vector<DeviceArray<__half>> memory;
  for (auto& of : values) {
    of.resize(numbers);
    for (__half& value : of) value = __float2half_rn(normal(random));
    memory.push_back(*DeviceArray<__half>::Upload(of));
  }
  std::vector<__half> output(numbers, __float2half_rn(99));
  auto device_output = *DeviceArray<__half>::Upload(output);
  auto workspace =
      *DeviceArray<uint8_t>::Allocate(ByteAttentionWorkspaceBytes(tokens, pattern->slots(), counts, widths.bits));
  const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
  QueueByteAttention(*pattern,
                     {counts, memory[0].data(), memory[1].data(), memory[2].data(), device_output.data(), scale,
                      workspace.data(), widths.bits},
                     nullptr);
  ASSERT_EQ(cudaMemcpy(output.data(), device_output.data(), device_output.bytes(), cudaMemcpyDeviceToHost),
            cudaSuccess);
  double largest = 0, error = 0;
  for (int sequence = 0; sequence < counts.sequences; ++sequence) {
    for (int head = 0; head < counts.heads; ++head) {
      const auto place = [&](int64_t token) { return (sequence * tokens + token) * channels + head * head_dim; };
      RoundedTokens rounded;
      for (int of = 0; of < 3; ++of) {
        for (int64_t token = 0; token < tokens; ++token) {
          rounded[of].push_back(
              RoundHead(widths.bits.operands, {values[of].data() + place(token), static_cast<size_t>(head_dim)}));
        }
      }
      for (int64_t query = 0; query < tokens; ++query) {
        const auto expected = AttendRounded(rounded, query, drawn.Keys(query), widths.bits.shares, scale);
        for (int d = 0; d < head_dim; ++d) {
          largest = std::max(largest, std::abs(expected[d]));
          const double actual = __half2float(output[place(query) + d]);
          error = std::max(error, std::isnan(actual) ? 1e30 : std::abs(actual - expected[d]));
        }
      }
    }
  }
  EXPECT_LT(error, widths.most_error * largest);
}

TEST_F(AttentionBytesTest, AttentionIsWhatItsWidthsSay) {
  for (const int head_dim : {64, 128}) {
    for (const AttentionBound& widths : kAttentionBounds) ExpectAttention(head_dim, widths);
  }
}

// Shares of 16 bits of many equal keys: sums do not fit 32 bits.
TEST_F(AttentionBytesTest, LargeSumsOfSharesDoNotWrapAround) {
  const HeadCounts counts = {1, 1, 64};
  const int64_t tokens = 2048;
  const AttentionPattern full = AttentionPattern::FromBand(tokens, tokens, false);
  const auto pattern = *KeyPanels::Make(full);
  const auto ones = *DeviceArray<__half>::Upload(std::vector<__half>(tokens * 64, __float2half_rn(1)));
  auto output = *DeviceArray<__half>::Allocate(tokens * 64);
  auto workspace =
      *DeviceArray<uint8_t>::Allocate(ByteAttentionWorkspaceBytes(tokens, pattern->slots(), counts, {16, 8}));
  QueueByteAttention(
      *pattern, {counts, ones.data(), ones.data(), ones.data(), output.data(), 1.0f / 8, workspace.data(), {16, 8}},
      nullptr);
  std::vector<__half> actual(tokens * 64);
  ASSERT_EQ(cudaMemcpy(actual.data(), output.data(), output.bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
  for (const __half value : actual) ASSERT_NEAR(__half2float(value), 1, .002);
}

}  // namespace
}  // namespace swizzle::cuda
