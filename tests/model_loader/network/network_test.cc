#include "model_loader/network/network.h"

#include "gtest/gtest.h"
#include "kernels/format/csr.h"
#include "kernels/format/dense.h"
#include "tests/support/random_encoder.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using testing::MakeRandomNetwork;

TEST(NetworkTest, KnowsTheRowsOfItsSmallestTables) {
  const Network network = testing::MakeRandomEncoder({.vocabulary = 50, .positions = 80});
  EXPECT_EQ(network.LookupLimit(network.inputs[0].value), 50);
  EXPECT_EQ(network.LookupLimit(-1), 80);
  EXPECT_EQ(network.LookupLimit(network.outputs[0].value), 0);
}

TEST(NetworkTest, PaddingHasARowOfItsOwnWherePositionsCount) {
  EXPECT_EQ(testing::MakeRandomEncoder({.positions = 80, .padding = 1}).LookupLimit(-1), 79);
}

TEST(NetworkTest, CountsBytes) {
  Network network;
  network.weights.push_back({DenseMatrix{2, 3, {1, 0, 0, 0, 0, 2}}, {1, 2}});
  network.weights.push_back({CsrMatrix::FromDense(DenseMatrix{2, 3, {1, 0, 0, 0, 0, 2}}), {}});
  EXPECT_EQ(network.DenseWeightBytes(), (6 + 2 + 6) * 4);
  const int64_t csr_bytes = 2 * 4 + 2 * 2 + 3 * 4;
  EXPECT_EQ(network.StoredWeightBytes(), (6 + 2) * 4 + csr_bytes);
}

TEST(NetworkTest, MakesProblems) {
  const Network network = MakeRandomNetwork({});
  const Layer& stem = network.layers[0];
  const Problem problem = LayerProblem(network, stem, 5, 2);
  EXPECT_EQ(problem.op, Op::kConv);
  EXPECT_EQ(problem.input, (Extent{5, 3, 14, 14}));
  EXPECT_EQ(problem.output, (Extent{5, 16, 7, 7}));
  EXPECT_EQ(problem.window(), stem.window());
  EXPECT_EQ(problem.epilogue, stem.epilogue);
  EXPECT_EQ(problem.threads, 2);
}

}  // namespace
}  // namespace swizzle
