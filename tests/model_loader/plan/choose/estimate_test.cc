#include "model_loader/plan/choose/estimate.h"

#include <gtest/gtest.h>

#include "tests/support/random_network.h"

namespace swizzle {
namespace {

Kernel ConvKernel(Format format) {
  Kernel kernel{};
  kernel.key = {Op::kConv, format, DType::kFloat32, DType::kFloat32, DType::kFloat32, Layout::kPanels, Layout::kPanels};
  return kernel;
}

Problem PointwiseProblem(int64_t channels, int64_t plane) {
  Problem problem;
  problem.input = problem.output = {1, channels, plane, plane};
  return problem;
}

Weight SparseWeight(int64_t channels, double sparsity) {
  return {CsrMatrix::FromDense(testing::MakeRandomMatrix(channels, channels, sparsity, 1)), {}};
}

TEST(EstimateTest, SparseBeatsDenseWhereMostWeightsAreZero) {
  const Problem problem = PointwiseProblem(128, 28);
  const Weight pruned = SparseWeight(128, 0.9), full = SparseWeight(128, 0.1);
  const Kernel sparse = ConvKernel(Format::kCsr), dense = ConvKernel(Format::kDense);
  EXPECT_LT(EstimateMicroseconds(sparse, problem, &pruned), EstimateMicroseconds(dense, problem, &pruned));
  EXPECT_GT(EstimateMicroseconds(sparse, problem, &full), EstimateMicroseconds(dense, problem, &full));
}

TEST(EstimateTest, GrowsWithPositionsAndBytes) {
  const Kernel dense = ConvKernel(Format::kDense);
  const Weight weight = SparseWeight(64, 0.5);
  EXPECT_GT(EstimateMicroseconds(dense, PointwiseProblem(64, 28), &weight),
            3 * EstimateMicroseconds(dense, PointwiseProblem(64, 14), &weight));
  Kernel convert{};
  convert.key = {Op::kConvertLayout, Format::kNone, DType::kFloat32, DType::kFloat32,
                 DType::kFloat32,    Layout::kNchw, Layout::kPanels};
  EXPECT_GT(EstimateMicroseconds(convert, PointwiseProblem(64, 28), nullptr),
            2 * EstimateMicroseconds(convert, PointwiseProblem(64, 14), nullptr));
}

}  // namespace
}  // namespace swizzle
