// Runs plans on drawn inputs and compares what comes out, for tests that hold one plan against another.
#ifndef SWIZZLE_TESTS_SUPPORT_PLAN_RUNS_H_
#define SWIZZLE_TESTS_SUPPORT_PLAN_RUNS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "model_loader/plan/planner.h"

namespace swizzle::testing {

// On one thread, for up to 512 tokens, from measurements of a millisecond in all. Null, and a failure, without a plan.
inline std::shared_ptr<const Plan> MustPlan(const Network& network, Backend& backend,
                                            Precision precision = Precision::kFloat32) {
  PlanOptions options;
  options.threads = 1;
  options.max_tokens = 512;
  options.precision = precision;
  options.tuning_budget = absl::Milliseconds(1);
  auto plan = MakePlan(network, backend, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : nullptr;
}

// tolerance: of the largest magnitude expected.
inline void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 0.0f, difference = 0.0f;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i])) << i;
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(actual[i] - expected[i]));
  }
  EXPECT_LE(difference, tolerance * largest);
}

inline std::vector<float> DrawFloats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// The first output, of the first input.
inline std::vector<float> RunImages(Runner& runner, int64_t batch, const std::vector<float>& input) {
  std::ranges::copy(input, runner.Input(0, batch).begin());
  EXPECT_TRUE(runner.Run(batch).ok());
  const auto output = runner.Output(0, batch);
  return {output.begin(), output.end()};
}

inline std::vector<std::byte> DrawBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 256);
  return bytes;
}

// Likewise of an input of bytes.
inline std::vector<float> RunBytes(Runner& runner, int64_t batch, const std::vector<std::byte>& input) {
  std::ranges::copy(input, runner.InputMemory(0, batch).begin());
  EXPECT_TRUE(runner.Run(batch).ok());
  const auto output = runner.Output(0, batch);
  return {output.begin(), output.end()};
}

// A batch of sequences of these lengths.
struct Batch {
  explicit Batch(const std::vector<int32_t>& lengths, bool masked) {
    for (const int32_t length : lengths) {
      begins.push_back(begins.back() + length);
      for (int32_t i = 0; i < length; ++i) {
        positions.push_back(i);
        if (masked) bias.push_back(i > 0 && i % 3 == 0 ? -10000.0f : 0.0f);
      }
    }
  }
  BatchSize size() const { return {static_cast<int64_t>(begins.size()) - 1, static_cast<int64_t>(positions.size())}; }

  std::vector<int32_t> begins = {0}, positions;
  std::vector<float> bias;
};

// Both outputs of an encoder (random_encoder.h).
inline std::vector<std::vector<float>> RunSequences(Runner& runner, const Batch& batch) {
  uint32_t next = 0;
  for (int32_t& id : runner.Ids(0, batch.size())) id = static_cast<int32_t>((next = next * 31 + 7) & 15);
  const Sequences sequences = {batch.begins, batch.positions, batch.bias};
  EXPECT_TRUE(runner.Run(batch.size(), &sequences).ok());
  std::vector<std::vector<float>> outputs;
  for (int i = 0; i < 2; ++i) {
    const auto output = runner.Output(i, batch.size());
    outputs.emplace_back(output.begin(), output.end());
  }
  return outputs;
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_PLAN_RUNS_H_
