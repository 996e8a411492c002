#include "model_loader/plan/choose/like_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/format/csr.h"
#include "tests/support/random_network.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;

const Kernel kFast{}, kSlow{};  // by address alone

std::vector<Candidate> Candidates(double fast = 0.0, double slow = 0.0) {
  std::vector<Candidate> candidates(2);
  candidates[0].kernel = &kFast;
  candidates[1].kernel = &kSlow;
  if (fast > 0.0) candidates[0].microseconds = {fast};
  if (slow > 0.0) candidates[1].microseconds = {slow};
  return candidates;
}

const std::vector<const Kernel*> kBoth = {&kFast, &kSlow};

Problem Pointwise(int64_t channels) {
  Problem problem;
  problem.input = problem.output = {1, channels, 7, 7};
  return problem;
}

Weight Pruned(int64_t channels, double sparsity, int seed) {
  return {CsrMatrix::FromDense(testing::MakeRandomMatrix(channels, channels, sparsity, seed)), {}};
}

LayerLikeness Likeness(int64_t channels, double sparsity, int seed) {
  const Weight weight = Pruned(channels, sparsity, seed);
  return LikenessOf(Pointwise(channels), &weight);
}

TEST(LikeLayersTest, TakesTimesOfALayerWithOtherZeros) {
  LikeLayers like;
  like.Add(Likeness(64, 0.5, 1), kBoth, Candidates(3, 5));
  std::vector<Candidate> candidates = Candidates();
  std::swap(candidates[0], candidates[1]);
  ASSERT_TRUE(like.TakeTimes(Likeness(64, 0.5, 2), candidates));
  EXPECT_THAT(candidates[0].microseconds, ElementsAre(5));
  EXPECT_THAT(candidates[1].microseconds, ElementsAre(3));
  EXPECT_FALSE(candidates[0].measured);
  EXPECT_TRUE(candidates[0].alike);
}

TEST(LikeLayersTest, TakesNoneOfOtherShapesOrWithManyMoreNonzeros) {
  LikeLayers like;
  like.Add(Likeness(64, 0.5, 1), kBoth, Candidates(3, 5));
  std::vector<Candidate> candidates = Candidates();
  EXPECT_FALSE(like.TakeTimes(Likeness(32, 0.5, 2), candidates));
  EXPECT_FALSE(like.TakeTimes(Likeness(64, 0.3, 2), candidates));
  EXPECT_TRUE(candidates[0].microseconds.empty());
}

TEST(LikeLayersTest, DenseWeightsAreAlikeWhateverTheirZeros) {
  const auto likeness = [](double sparsity) {
    const Weight weight{testing::MakeRandomMatrix(64, 64, sparsity, 1), {}};
    return LikenessOf(Pointwise(64), &weight);
  };
  LikeLayers like;
  like.Add(likeness(0.0), kBoth, Candidates(3, 5));
  std::vector<Candidate> candidates = Candidates();
  EXPECT_TRUE(like.TakeTimes(likeness(0.5), candidates));
  EXPECT_FALSE(like.TakeTimes(Likeness(64, 0.0, 1), candidates)) << "as CSR";
}

// Else a layer was estimated for the sake of kernels that had turned out too slow to ask for.
TEST(LikeLayersTest, DropsWhatWasDroppedWhenItWasMeasured) {
  LikeLayers like;
  std::vector<Candidate> one = Candidates(3, 5);
  one.pop_back();
  like.Add(Likeness(64, 0.5, 1), kBoth, one);
  std::vector<Candidate> candidates = Candidates();
  ASSERT_TRUE(like.TakeTimes(Likeness(64, 0.5, 2), candidates));
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].kernel, &kFast);
  EXPECT_THAT(candidates[0].microseconds, ElementsAre(3));
}

TEST(LikeLayersTest, TakesNoneWhereAKernelWasNotOffered) {
  LikeLayers like;
  std::vector<Candidate> one = Candidates(3, 5);
  one.pop_back();
  like.Add(Likeness(64, 0.5, 1), {&kFast}, one);
  std::vector<Candidate> candidates = Candidates();
  EXPECT_FALSE(like.TakeTimes(Likeness(64, 0.5, 2), candidates));
  EXPECT_TRUE(candidates[0].microseconds.empty());
}

// Their times are with zeros that its own input hasn't: it has the others' times.
TEST(LikeLayersTest, KernelsThatSkipInputZerosStayWithTheirZeros) {
  const Kernel skips = SkippingInputZeros({});
  const auto likeness = [](double zeros) {
    LayerLikeness like = Likeness(64, 0.5, 1);
    like.input_zeros = InputZeros{0, 0, 0, zeros};
    return like;
  };
  std::vector<Candidate> timed = Candidates(3, 5), offered = Candidates();
  timed.push_back({.kernel = &skips, .microseconds = {1}});
  offered.push_back({.kernel = &skips});
  LikeLayers like;
  like.Add(likeness(0.9), {&kFast, &kSlow, &skips}, timed);
  std::vector<Candidate> same = offered, other = offered;
  ASSERT_TRUE(like.TakeTimes(likeness(0.9), same));
  EXPECT_EQ(same.size(), 3u);
  ASSERT_TRUE(like.TakeTimes(likeness(0.8), other));
  ASSERT_EQ(other.size(), 2u);
  EXPECT_EQ(other[0].kernel, &kFast);
  EXPECT_EQ(other[1].kernel, &kSlow);
}

TEST(LikeLayersTest, OneOfAKindComesFirst) {
  const std::vector<LayerLikeness> likeness = {{"a", 0}, {"b", 0}, {"a", 0}, {"a", 0}, {"b", 0}, {"c", 0}};
  std::vector<size_t> order = {5, 3, 2, 0, 4, 1};
  LikeLayers::PutRepeatsLast(likeness, order);
  EXPECT_THAT(order, ElementsAre(5, 3, 4, 2, 1, 0));
}

}  // namespace
}  // namespace swizzle
