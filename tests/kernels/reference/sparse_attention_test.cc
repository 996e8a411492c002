#include "kernels/reference/sparse_attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace swizzle::reference {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using testing::Pointwise;

// Query 0 has no keys, query 1 keys 0 and 2, query 2 key 1.
const AttentionPattern kPattern{.tokens = 3, .row_offsets = {0, 0, 2, 3}, .col_indices = {0, 2, 1}};

TEST(SparseAttentionReference, SddmmReadsOnlyThePattern) {
  EXPECT_THAT(Sddmm(kPattern, 2, {9, 9, 1, 2, 3, 4}, {1, 10, 2, 20, 3, 30}), ElementsAre(21, 63, 86));
}

TEST(SparseAttentionReference, SoftmaxIsWithinRows) {
  const double e = std::exp(1.0);
  EXPECT_THAT(SparseSoftmax(kPattern, 0.5, {2, 0, 7}),
              Pointwise(DoubleNear(1e-12), Result{e / (e + 1), 1 / (e + 1), 1.0}));
}

TEST(SparseAttentionReference, PartsMakeTheWhole) {
  const Values q = {9, 9, 1, 2, 3, 4}, k = {1, 10, 2, 20, 3, 30}, v = {1, 2, 3, 4, 5, 6};
  const Result parts = PatternSpmm(kPattern, 2, SparseSoftmax(kPattern, 0.01, Sddmm(kPattern, 2, q, k)), v);
  EXPECT_THAT(SparseAttention(kPattern, 2, 0.01, {q, k, v}), Pointwise(DoubleNear(1e-12), parts));
  const double weight = 1 / (1 + std::exp(0.42));
  EXPECT_THAT(parts, Pointwise(DoubleNear(1e-12), Result{0, 0, 5 - 4 * weight, 6 - 4 * weight, 3, 4}));
}

}  // namespace
}  // namespace swizzle::reference
