// An encoder from an ONNX file whose attention has a constant mask, as a plan in INT8: from the file's bytes to sparse
// attention through bytes. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "model_loader/load/loader.h"
#include "model_loader/plan/planner.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/plan_runs.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using testing::DrawFloats;
using testing::ExpectClose;
using testing::OnnxBuilder;

constexpr int64_t kLength = 72, kHeads = 2, kHeadChannels = 64, kChannels = kHeads * kHeadChannels, kVocabulary = 50;
constexpr int64_t kGroup = 8;  // queries that share keys

// 0 where a key is kept, [1, 1, length, length].
std::vector<float> Mask() {
  std::mt19937 random(3);
  std::vector<float> mask(kLength * kLength, -std::numeric_limits<float>::infinity());
  for (int64_t first = 0; first < kLength; first += kGroup) {
    for (int64_t key = 0; key < kLength; ++key) {
      const bool is_own = key / kGroup == first / kGroup;
      if (!is_own && random() % 10 != 0) continue;
      for (int64_t query = first; query < first + kGroup; ++query) mask[query * kLength + key] = 0.0f;
    }
  }
  return mask;
}

std::vector<float> Drawn(int64_t rows, int64_t cols, uint32_t seed) {
  std::vector<float> values = DrawFloats(static_cast<size_t>(rows * cols), seed);
  for (float& value : values) value /= std::sqrt(static_cast<float>(rows));
  return values;
}

// One block without a feed-forward part, as PyTorch's exporter spells it.
std::vector<std::byte> EncoderFile() {
  OnnxBuilder b;
  b.Int64Input("input_ids", {-1, kLength}).Output("hidden");
  b.Floats("words", {kVocabulary, kChannels}, DrawFloats(kVocabulary * kChannels, 1));
  b.Int64s("split", {4}, {0, kLength, kHeads, kHeadChannels}).Int64s("joined", {3}, {0, kLength, kChannels});
  b.Floats("scale", {}, {1.0f / std::sqrt(static_cast<float>(kHeadChannels))});
  b.Floats("mask", {1, 1, kLength, kLength}, Mask());
  b.Node("Gather", {"words", "input_ids"}, {"x"}, {{"axis", int64_t{0}}});
  uint32_t seed = 2;
  const auto linear = [&](const std::string& name, const std::string& from) {
    b.Floats(name + ".weight", {kChannels, kChannels}, Drawn(kChannels, kChannels, seed++));
    b.Floats(name + ".bias", {kChannels}, Drawn(1, kChannels, seed++));
    b.Node("MatMul", {from, name + ".weight"}, {name + ".product"});
    b.Node("Add", {name + ".product", name + ".bias"}, {name});
  };
  const auto split = [&](const std::string& name, const std::vector<int64_t>& order) {
    linear(name, "x");
    b.Node("Reshape", {name, "split"}, {name + ".heads"});
    b.Node("Transpose", {name + ".heads"}, {name + ".by_head"}, {{"perm", order}});
  };
  split("q", {0, 2, 1, 3}), split("k", {0, 2, 3, 1}), split("v", {0, 2, 1, 3});
  b.Node("MatMul", {"q.by_head", "k.by_head"}, {"scores"});
  b.Node("Mul", {"scores", "scale"}, {"scaled"});
  b.Node("Add", {"scaled", "mask"}, {"masked"});
  b.Node("Softmax", {"masked"}, {"shares"}, {{"axis", int64_t{-1}}});
  b.Node("MatMul", {"shares", "v.by_head"}, {"attended"});
  b.Node("Transpose", {"attended"}, {"by_token"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  b.Node("Reshape", {"by_token", "joined"}, {"merged"});
  linear("mixed", "merged");
  b.Node("Add", {"mixed", "x"}, {"sum"});
  b.Floats("norm.scale", {kChannels}, std::vector<float>(kChannels, 1.0f));
  b.Floats("norm.shift", {kChannels}, Drawn(1, kChannels, seed++));
  b.Node("LayerNormalization", {"sum", "norm.scale", "norm.shift"}, {"hidden"}, {{"axis", int64_t{-1}}});
  return b.Bytes();
}

std::vector<float> RunOf(Runner& runner, int64_t count) {
  std::vector<int32_t> begins, positions;
  for (int64_t i = 0; i <= count; ++i) begins.push_back(static_cast<int32_t>(i * kLength));
  for (int64_t i = 0; i < count * kLength; ++i) positions.push_back(static_cast<int32_t>(i % kLength));
  const BatchSize size(count, count * kLength);
  std::mt19937 random(5);
  for (int32_t& id : runner.Ids(0, size)) id = static_cast<int32_t>(random() % kVocabulary);
  const Sequences sequences = {begins, positions, {}};
  EXPECT_TRUE(runner.Run(size, &sequences).ok());
  const auto output = runner.Output(0, size);
  return {output.begin(), output.end()};
}

class OnnxEncoderTest : public ::testing::Test {
 protected:
  OnnxEncoderTest() {
    const std::vector<std::byte> bytes = EncoderFile();
    std::ofstream(folder_ / "model.onnx", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  std::shared_ptr<const Plan> PlanFor(Backend& backend, Precision precision) {
    auto model = LoadModel(folder_ / "model.onnx");
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? testing::MustPlan(model->network, backend, precision) : nullptr;
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
};

TEST_F(OnnxEncoderTest, AConstantMaskBecomesAPattern) {
  const auto plan = PlanFor(*cpu_, Precision::kFloat32);
  ASSERT_NE(plan, nullptr);
  EXPECT_TRUE(std::ranges::any_of(plan->report().layers,
                                  [](const LayerReport& layer) { return layer.op == "SparseAttention"; }));
}

TEST_F(OnnxEncoderTest, PlansInInt8AttendThroughBytes) {
  auto gpu = NewCudaBackend(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  const auto cpu = PlanFor(*cpu_, Precision::kFloat32), whole = PlanFor(**gpu, Precision::kInt8);
  ASSERT_TRUE(cpu != nullptr && whole != nullptr);
  const auto attends_in_bytes = [](const LayerReport& layer) {
    return std::ranges::any_of(layer.candidates, [](const auto& candidate) {
      return candidate.kernel == "sparse_attention_nhwc_pattern_f16_bytes_sm80";
    });
  };
  EXPECT_TRUE(std::ranges::any_of(whole->report().layers, attends_in_bytes));
  auto cpu_runner = *cpu->NewRunner({}), gpu_runner = *whole->NewRunner({});
  for (const int64_t count : {1, 5, 1, 3}) ExpectClose(RunOf(*gpu_runner, count), RunOf(*cpu_runner, count), 4e-2f);
}

}  // namespace
}  // namespace swizzle
