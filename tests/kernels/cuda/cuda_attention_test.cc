// Sparse attention on a GPU, whole and in parts, beside the double-precision reference. Skipped where there is no GPU.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/half.h"
#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/attention/sddmm_tiles.h"
#include "kernels/cuda/attention/sparse_attention.h"
#include "kernels/cuda/attention/sparse_softmax.h"
#include "kernels/format/attention_pattern.h"
#include "kernels/reference/sparse_attention.h"

namespace swizzle::cuda {
namespace {

using reference::Result;
using reference::Values;

constexpr int kHeads = 2;

uint16_t HalfBits(float value) { return static_cast<__half_raw>(__float2half(value)).x; }

bool HasGpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

// What the type holds of a number.
float Rounded(float value, DType dtype) { return dtype == DType::kFloat16 ? FloatOfHalf(HalfBits(value)) : value; }

Values Draw(size_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Values values(count);
  for (float& value : values) value = Rounded(normal(random), dtype);
  return values;
}

DeviceArray<std::byte> Upload(const Values& values, DType dtype) {
  if (dtype == DType::kFloat32) return *DeviceArray<std::byte>::Upload(std::as_bytes(std::span(values)));
  std::vector<uint16_t> halves(values.size());
  std::transform(values.begin(), values.end(), halves.begin(), HalfBits);
  return *DeviceArray<std::byte>::Upload(std::as_bytes(std::span(halves)));
}

Values Download(const DeviceArray<std::byte>& array, DType dtype) {
  std::vector<std::byte> bytes(array.size());
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(bytes.data(), array.data(), bytes.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  Values values(bytes.size() / ElementBytes(dtype));
  if (dtype == DType::kFloat32) {
    std::vector<float> floats(values.size());
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    std::ranges::copy(floats, values.begin());
  } else {
    std::vector<uint16_t> halves(values.size());
    std::memcpy(halves.data(), bytes.data(), bytes.size());
    std::ranges::transform(halves, values.begin(), FloatOfHalf);
  }
  return values;
}

// Full of NaN, so that what nobody wrote shows.
DeviceArray<std::byte> Poisoned(size_t elements, DType dtype) {
  auto array = *DeviceArray<std::byte>::Allocate(elements * ElementBytes(dtype));
  EXPECT_EQ(cudaMemset(array.data(), 0xFF, array.bytes()), cudaSuccess);
  return array;
}

double RelativeError(const Values& values, const Result& truth) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    error += (values[i] - truth[i]) * (values[i] - truth[i]);
    norm += truth[i] * truth[i];
  }
  return norm == 0 ? error : std::sqrt(error / norm);
}

// FP32 is held to a few roundings of its sums, FP16 to those of its weights and outputs.
double Tolerance(DType dtype) { return dtype == DType::kFloat32 ? 2e-6 : 1e-3; }

// One head of [tokens][heads * head_dim].
Values Head(const Values& all, int64_t tokens, int head_dim, int head) {
  Values values(tokens * head_dim);
  for (int64_t token = 0; token < tokens; ++token) {
    std::copy_n(all.begin() + (token * kHeads + head) * head_dim, head_dim, values.begin() + token * head_dim);
  }
  return values;
}

struct Case {
  std::string name;
  AttentionPattern pattern;
};

// Every third query has no keys, every other one key, the last all.
AttentionPattern Ragged(int64_t tokens) {
  AttentionPattern pattern{.tokens = tokens, .row_offsets = {0}, .col_indices = {}};
  for (int64_t query = 0; query < tokens; ++query) {
    const int64_t keys = query + 1 == tokens ? tokens : query % 3 == 0 ? 0 : 1;
    for (int64_t i = 0; i < keys; ++i) {
      pattern.col_indices.push_back(static_cast<uint32_t>(keys == 1 ? query * 7 % tokens : i));
    }
    pattern.row_offsets.push_back(static_cast<uint32_t>(pattern.nnz()));
  }
  return pattern;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"one_token", AttentionPattern::FromBand(1, 1, true)});
  cases.push_back({"empty", {.tokens = 3, .row_offsets = {0, 0, 0, 0}, .col_indices = {}}});
  cases.push_back({"ragged", Ragged(301)});
  cases.push_back({"band", AttentionPattern::FromBand(517, 150, true)});
  cases.push_back({"band_both_ways", AttentionPattern::FromBand(300, 40, false)});
  cases.push_back({"band_and_random", AttentionPattern::FromBandAndRandom(901, 32, 0.07, 1)});
  cases.push_back({"blocks", AttentionPattern::FromBlocks(700, 128, {{0, 0}, {0, 2}, {2, 1}, {3, 3}, {5, 0}, {5, 5}})});
  cases.push_back({"long_rows", AttentionPattern::FromBand(1100, 1100, true)});
  return cases;
}

class CudaAttentionTest : public ::testing::TestWithParam<std::tuple<DType, int>> {
 protected:
  void SetUp() override {
    if (!HasGpu()) GTEST_SKIP() << "no GPU";
  }
  DType dtype() const { return std::get<0>(GetParam()); }
  int head_dim() const { return std::get<1>(GetParam()); }

  // The operands of all heads, with larger queries than usual, so that weights differ widely.
  void MakeOperands(const AttentionPattern& pattern) {
    const size_t count = pattern.tokens * kHeads * head_dim();
    for (int i = 0; i < 3; ++i) host_[i] = Draw(count, dtype(), 10 + i);
    for (float& value : host_[0]) value = Rounded(3 * value, dtype());
    for (int i = 0; i < 3; ++i) device_[i] = Upload(host_[i], dtype());
    output_ = Poisoned(count, dtype());
  }

  SparseAttentionArgs Args() {
    const int64_t channels = kHeads * head_dim();
    return {.dtype = dtype(),
            .queries = {device_[0].data(), channels, head_dim()},
            .keys = {device_[1].data(), channels, head_dim()},
            .values = {device_[2].data(), channels, head_dim()},
            .output = {output_.data(), channels, head_dim()},
            .heads = kHeads,
            .head_dim = head_dim(),
            .scale = Scale()};
  }
  float Scale() const { return 1 / std::sqrt(static_cast<float>(head_dim())); }

  void RunFused(const DeviceAttentionTiles& tiles) {
    auto workspace = *DeviceArray<std::byte>::Allocate(FusedWorkspaceBytes(Args(), tiles.tokens()));
    FusedSparseAttention(Args(), tiles, {workspace.data(), workspace.size()}, nullptr);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  void ExpectAttention(const Case& c, double tolerance) {
    const Values all = Download(output_, dtype());
    for (int head = 0; head < kHeads; ++head) {
      const auto of = [&](const Values& values) { return Head(values, c.pattern.tokens, head_dim(), head); };
      const Values q = of(host_[0]), k = of(host_[1]), v = of(host_[2]);
      const Result truth = reference::SparseAttention(c.pattern, head_dim(), Scale(), {q, k, v});
      EXPECT_LE(RelativeError(of(all), truth), tolerance) << c.name << ", head " << head;
    }
  }

  Values host_[3];
  DeviceArray<std::byte> device_[3], output_;
};

TEST_P(CudaAttentionTest, Fused) {
  for (const Case& c : Cases()) {
    const AttentionTileShape any = FusedTileShape(dtype(), head_dim(), {});
    const AttentionTileShape own = FusedTileShape(dtype(), head_dim(), DetectAttentionStructure(c.pattern));
    for (const AttentionTileShape& shape : own == any ? std::vector{any} : std::vector{any, own}) {
      MakeOperands(c.pattern);
      const auto tiles = *DeviceAttentionTiles::Make(AttentionTiles::Cut(c.pattern, shape));
      RunFused(tiles);
      ASSERT_EQ(cudaGetLastError(), cudaSuccess);
      ExpectAttention(c, Tolerance(dtype()));
    }
  }
}

TEST_P(CudaAttentionTest, InParts) {
  for (const Case& c : Cases()) {
    MakeOperands(c.pattern);
    const auto pattern = *DeviceAttentionPattern::Make(c.pattern);
    const auto tiles = *DeviceSddmmTiles::MakeBest(c.pattern, dtype(), kHeads);
    auto workspace =
        *DeviceArray<std::byte>::Allocate(SparseAttentionWorkspaceBytes(Args(), c.pattern.tokens, pattern.nnz()));
    SparseAttentionInParts(Args(), pattern, tiles, {workspace.data(), workspace.size()}, nullptr);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    ExpectAttention(c, 5 * Tolerance(dtype()));  // scores are rounded to the type before they are scaled
  }
}

TEST_P(CudaAttentionTest, SddmmAndSoftmax) {
  for (const Case& c : Cases()) {
    MakeOperands(c.pattern);
    const auto pattern = *DeviceAttentionPattern::Make(c.pattern);
    const auto scores = Poisoned(kHeads * pattern.value_stride(), dtype());
    auto weights = Poisoned(kHeads * pattern.value_stride(), dtype());
    const SparseAttentionArgs args = Args();
    Sddmm({dtype(), args.queries, args.keys, kHeads, head_dim(), const_cast<std::byte*>(scores.data())}, pattern,
          nullptr);
    SparseSoftmax({dtype(), scores.data(), weights.data(), kHeads, Scale()}, pattern, nullptr);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
    const Values all_scores = Download(scores, dtype()), all_weights = Download(weights, dtype());
    for (int head = 0; head < kHeads; ++head) {
      const auto of = [&](const Values& values) { return Head(values, c.pattern.tokens, head_dim(), head); };
      const auto part = [&](const Values& values) {
        const auto begin = values.begin() + head * pattern.value_stride();
        return Values(begin, begin + pattern.nnz());
      };
      const Result truth = reference::Sddmm(c.pattern, head_dim(), of(host_[0]), of(host_[1]));
      EXPECT_LE(RelativeError(part(all_scores), truth), Tolerance(dtype())) << c.name;
      const Values rounded = part(all_scores);  // what the softmax was given
      const Result soft = reference::SparseSoftmax(c.pattern, Scale(), Result(rounded.begin(), rounded.end()));
      EXPECT_LE(RelativeError(part(all_weights), soft), Tolerance(dtype())) << c.name;
    }
  }
}

// Of tiles that hold a nonzero, all; of those that hold many, some, beside rows; and of none.
TEST_P(CudaAttentionTest, SddmmByTiles) {
  if (!MultipliesSddmmTiles()) GTEST_SKIP() << "no such products";
  for (const Case& c : Cases()) {
    MakeOperands(c.pattern);
    const auto pattern = *DeviceAttentionPattern::Make(c.pattern);
    const SparseAttentionArgs args = Args();
    auto workspace =
        *DeviceArray<std::byte>::Allocate(SddmmWorkspaceBytes(dtype(), head_dim(), kHeads, c.pattern.tokens));
    for (const int64_t least : {1, 700, 10'000}) {
      const auto tiles = *DeviceSddmmTiles::Make(SddmmTiles::Cut(c.pattern, least));
      const auto scores = Poisoned(kHeads * pattern.value_stride(), dtype());
      SddmmByTiles({dtype(), args.queries, args.keys, kHeads, head_dim(), const_cast<std::byte*>(scores.data())},
                   pattern, tiles, {workspace.data(), workspace.size()}, nullptr);
      ASSERT_EQ(cudaGetLastError(), cudaSuccess);
      const Values all = Download(scores, dtype());
      for (int head = 0; head < kHeads; ++head) {
        const auto of = [&](const Values& values) { return Head(values, c.pattern.tokens, head_dim(), head); };
        const Result truth = reference::Sddmm(c.pattern, head_dim(), of(host_[0]), of(host_[1]));
        const auto begin = all.begin() + head * pattern.value_stride();
        EXPECT_LE(RelativeError(Values(begin, begin + pattern.nnz()), truth), Tolerance(dtype()))
            << c.name << ", tiles of " << least;
        for (auto spare = begin + pattern.nnz(); spare < begin + pattern.value_stride(); ++spare) {
          EXPECT_TRUE(std::isnan(*spare)) << c.name;
        }
      }
    }
  }
}

// References rise again and again: every key scores higher than those before it, by far.
TEST_P(CudaAttentionTest, RisingScores) {
  const Case c{"rising", AttentionPattern::FromBand(400, 400, true)};
  MakeOperands(c.pattern);
  const int channels = kHeads * head_dim();
  for (size_t i = 0; i < host_[0].size(); ++i) {
    host_[0][i] = i % head_dim() == 0 ? 1 : 0;
    host_[1][i] =
        Rounded(static_cast<float>(i / channels) * 0.25f * std::sqrt(static_cast<float>(head_dim())), dtype());
  }
  for (int i = 0; i < 2; ++i) device_[i] = Upload(host_[i], dtype());
  const AttentionTileShape shape = FusedTileShape(dtype(), head_dim(), {});
  const auto tiles = *DeviceAttentionTiles::Make(AttentionTiles::Cut(c.pattern, shape));
  RunFused(tiles);
  ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  ExpectAttention(c, 8 * Tolerance(dtype()));  // scores are near 100
}

INSTANTIATE_TEST_SUITE_P(All, CudaAttentionTest,
                         ::testing::Combine(::testing::Values(DType::kFloat32, DType::kFloat16),
                                            ::testing::Values(32, 64, 128)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) == DType::kFloat32 ? "f32" : "f16") + "_d" +
                                  std::to_string(std::get<1>(param.param));
                         });

}  // namespace
}  // namespace swizzle::cuda
