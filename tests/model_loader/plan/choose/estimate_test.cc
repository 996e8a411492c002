#include "model_loader/plan/choose/estimate.h"

#include <gtest/gtest.h>

#include "kernels/backend/device_speed.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/format/csr.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

Kernel ConvKernel(Format format) {
  Kernel kernel{};
  const Storage panels = {Layout::kPanels, DType::kFloat32};
  kernel.key = {Op::kConv, format, DType::kFloat32, panels, panels};
  return kernel;
}

Problem PointwiseProblem(int64_t channels, int64_t plane) {
  Problem problem;
  problem.input = problem.output = {1, channels, plane, plane};
  return problem;
}

WeightShape SparseWeight(int64_t channels, double sparsity) {
  return WeightShape(Weight{CsrMatrix::FromDense(testing::MakeRandomMatrix(channels, channels, sparsity, 1)), {}});
}

double Estimate(const Kernel& kernel, const Problem& problem, const WeightShape* weight) {
  return EstimateMicroseconds(kernel, problem, weight, NewCpuBackend()->throughput(Precision::kFloat32));
}

TEST(EstimateTest, SparseBeatsDenseWhereMostWeightsAreZero) {
  const Problem problem = PointwiseProblem(128, 28);
  const WeightShape pruned = SparseWeight(128, 0.9), full = SparseWeight(128, 0.1);
  const Kernel sparse = ConvKernel(Format::kCsr), dense = ConvKernel(Format::kDense);
  EXPECT_LT(Estimate(sparse, problem, &pruned), Estimate(dense, problem, &pruned));
  EXPECT_GT(Estimate(sparse, problem, &full), Estimate(dense, problem, &full));
}

TEST(EstimateTest, GrowsWithPositionsAndBytes) {
  const Kernel dense = ConvKernel(Format::kDense);
  const WeightShape weight = SparseWeight(64, 0.5);
  EXPECT_GT(Estimate(dense, PointwiseProblem(64, 28), &weight), 3 * Estimate(dense, PointwiseProblem(64, 14), &weight));
  Kernel convert{};
  convert.key = {Op::kConvertLayout, Format::kNone, DType::kFloat32, Storage{}, {Layout::kPanels, DType::kFloat32}};
  EXPECT_GT(Estimate(convert, PointwiseProblem(64, 28), nullptr),
            2 * Estimate(convert, PointwiseProblem(64, 14), nullptr));
}

// What is cheap beside what is the device's to say: a conversion costs a product more where memory is slow.
TEST(EstimateTest, GoesByWhatTheDeviceReaches) {
  const Kernel dense = ConvKernel(Format::kDense);
  const WeightShape weight = SparseWeight(64, 0.5);
  Throughput slow{.dense_multiply_adds = 1e3, .sparse_multiply_adds = 1e3, .depthwise_multiply_adds = 1e3, .floats = 1};
  Throughput fast = slow;
  fast.dense_multiply_adds = 4e3;
  const Problem problem = PointwiseProblem(64, 28);
  EXPECT_DOUBLE_EQ(EstimateMicroseconds(dense, problem, &weight, slow),
                   4 * EstimateMicroseconds(dense, problem, &weight, fast));
}

// On a device: a product of unfolded windows is none the faster for it.
TEST(EstimateTest, UnfoldingCostsWhatItMoves) {
  const Kernel direct = ConvKernel(Format::kDense);
  Kernel unfolding = direct;
  unfolding.workspace_bytes = +[](const Problem& problem) { return static_cast<size_t>(problem.input.plane()) * 40; };
  const WeightShape weight = SparseWeight(64, 0.5);
  const Problem problem = PointwiseProblem(64, 28);
  Throughput rates{.dense_multiply_adds = 1e3, .workspace_floats = 20};
  const double difference =
      EstimateMicroseconds(unfolding, problem, &weight, rates) - EstimateMicroseconds(direct, problem, &weight, rates);
  EXPECT_NEAR(difference, 28 * 28 * 10 / 20.0, 1e-6);
  rates.workspace_floats = 0;
  EXPECT_DOUBLE_EQ(EstimateMicroseconds(unfolding, problem, &weight, rates),
                   EstimateMicroseconds(direct, problem, &weight, rates));
}

// A table's rows are looked up, not multiplied: a large vocabulary costs a token nothing.
TEST(EstimateTest, EmbeddingsCostWhatTheyMoveHoweverLongTheirTable) {
  Kernel look_up{};
  const Storage rows = {Layout::kNchw, DType::kFloat32};
  look_up.key = {Op::kEmbedding, Format::kDense, DType::kFloat32, rows, rows};
  Problem problem;
  problem.op = Op::kEmbedding;
  problem.input = {1, 1, 1, 128};
  problem.output = {1, 32, 1, 128};
  const WeightShape few(Weight{testing::MakeRandomMatrix(16, 32, 0.0, 1), {}});
  const WeightShape many(Weight{testing::MakeRandomMatrix(4096, 32, 0.0, 1), {}});
  EXPECT_DOUBLE_EQ(Estimate(look_up, problem, &many), Estimate(look_up, problem, &few));
  EXPECT_GT(Estimate(look_up, problem, &few), 0.0);
}

// Else layers of many tokens, which were not measured, ran on kernels for a few requests.
TEST(EstimateTest, ZerosThatAreVisitedSaveNoTime) {
  const Kernel bitmap = ConvKernel(Format::kBitmap), dense = ConvKernel(Format::kDense);
  const WeightShape weight = SparseWeight(64, 0.9);
  const Problem problem = PointwiseProblem(64, 28);
  EXPECT_DOUBLE_EQ(Estimate(bitmap, problem, &weight), Estimate(dense, problem, &weight));
}

// Multiplied by matrix units: faster than single nonzeros, where the device says so.
TEST(EstimateTest, BlocksGoByTheirOwnRate) {
  const Kernel vectors = ConvKernel(Format::kShflBw), single = ConvKernel(Format::kCsr);
  const WeightShape weight = SparseWeight(64, 0.5);
  Throughput rates{.dense_multiply_adds = 1e3, .sparse_multiply_adds = 1e3, .depthwise_multiply_adds = 1e3};
  const Problem problem = PointwiseProblem(64, 28);
  EXPECT_DOUBLE_EQ(EstimateMicroseconds(vectors, problem, &weight, rates),
                   EstimateMicroseconds(single, problem, &weight, rates));
  rates.block_multiply_adds = 2e3;
  EXPECT_DOUBLE_EQ(2 * EstimateMicroseconds(vectors, problem, &weight, rates),
                   EstimateMicroseconds(single, problem, &weight, rates));
}

// Else single images would be computed as eight.
TEST(EstimateTest, BatchesAreRoundedUp) {
  Kernel rows = ConvKernel(Format::kShflBw), batched = rows;
  rows.key.output.layout = Layout::kRows;
  batched.key.output.layout = Layout::kBatched;
  const WeightShape weight = SparseWeight(64, 0.5);
  const Throughput rates{.dense_multiply_adds = 1e3, .sparse_multiply_adds = 1e3, .depthwise_multiply_adds = 1e3};
  Problem problem = PointwiseProblem(64, 28);
  EXPECT_DOUBLE_EQ(EstimateMicroseconds(batched, problem, &weight, rates),
                   8 * EstimateMicroseconds(rows, problem, &weight, rates));
  problem.input.batch = problem.output.batch = 8;
  EXPECT_DOUBLE_EQ(EstimateMicroseconds(batched, problem, &weight, rates),
                   EstimateMicroseconds(rows, problem, &weight, rates));
}

// Of plans that store all in FP32, rows that may not round do not run on tensor cores.
TEST(EstimateTest, ExactRowsReachNoMoreWhereOthersMayRound) {
  const auto throughput = [](Precision precision) { return ThroughputOf({}, precision); };
  const auto of = [&](Precision precision) {
    return PlanThroughput{precision, throughput(precision), throughput(Precision::kFloat32),
                          throughput(Precision::kFloat16x3)};
  };
  const auto rate = [](const PlanThroughput& plan, const Kernel& kernel) {
    return plan.For(kernel).dense_multiply_adds;
  };
  const Kernel exact{}, tf32 = Computing(Numerics::kTf32Factors, {}), split = Computing(Numerics::kSplitFactors, {});
  const double single = throughput(Precision::kFloat32).dense_multiply_adds;
  EXPECT_DOUBLE_EQ(rate(of(Precision::kTf32), exact), single);
  EXPECT_DOUBLE_EQ(rate(of(Precision::kFloat16x3), exact), single);
  EXPECT_GT(rate(of(Precision::kFloat16x3), split), 2 * single);
  EXPECT_DOUBLE_EQ(rate(of(Precision::kTf32), tf32), 3 * rate(of(Precision::kTf32), split));
  EXPECT_GT(rate(of(Precision::kFloat16), exact), 2 * single);
}

}  // namespace
}  // namespace swizzle
