#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/base/integers.h"
#include "kernels/format/csr.h"
#include "kernels/format/row_patterns.h"
#include "kernels/format/weight_matrix.h"
#include "model_loader/pruning/magnitude.h"
#include "model_loader/pruning/vectors.h"

namespace swizzle {
namespace {

constexpr int kMostIterations = 10;
constexpr uint32_t kSeed = 20220710;

// For each row the columns that an unstructured mask keeps.
RowPatterns MasksOf(const WeightView& weights, double density) {
  DenseMatrix kept{weights.rows, weights.cols, {weights.values.begin(), weights.values.end()}};
  PruneSmallest(kept.values, 1.0 - std::min(1.0, density), weights.scores);
  return RowPatterns(WeightMatrix(CsrMatrix::FromDense(kept)));
}

// k-means over the masks with groups of given sizes.
class BalancedClusters {
 public:
  BalancedClusters(const RowPatterns& masks, int64_t vector_rows)
      : masks_(masks),
        vector_rows_(vector_rows),
        groups_(CeilDiv(masks.rows(), vector_rows)),
        means_(groups_ * masks.cols()),
        group_of_(masks.rows(), -1) {
    Seed();
  }

  // Rows to the nearest groups that have place, and groups' means of their rows. Whether a row moved.
  bool Iterate() {
    const bool moved = Assign();
    std::ranges::fill(means_, 0.0f);
    for (int64_t row = 0; row < masks_.rows(); ++row) {
      const int64_t group = group_of_[row];
      for (uint32_t col : masks_.Of(row)) means_[group * masks_.cols() + col] += 1.0f / static_cast<float>(Size(group));
    }
    return moved;
  }

  // Group by group, rows rising in each.
  std::vector<uint32_t> Order() const {
    std::vector<uint32_t> order(masks_.rows());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t row) { return group_of_[row]; });
    return order;
  }

 private:
  int64_t Size(int64_t group) const { return std::min(vector_rows_, masks_.rows() - group * vector_rows_); }

  // k-means++: each further seed is drawn by its squared distance from the nearest one so far.
  void Seed() {
    std::mt19937 random(kSeed);
    std::vector<double> distances(masks_.rows(), std::numeric_limits<double>::infinity());
    auto seed = static_cast<int64_t>(random() % masks_.rows());
    for (int64_t group = 0; group < groups_; ++group) {
      float* const mean = means_.data() + group * masks_.cols();
      for (uint32_t col : masks_.Of(seed)) mean[col] = 1.0f;
      double total = 0;
      for (int64_t row = 0; row < masks_.rows(); ++row) {
        distances[row] = std::min(distances[row], Distance(row, seed, mean));
        total += distances[row];
      }
      double drawn = total * static_cast<double>(random()) / 4294967296.0;
      seed = 0;
      while (seed + 1 < masks_.rows() && drawn >= distances[seed]) drawn -= distances[seed++];
    }
  }

  // How many columns one of two rows keeps alone.
  double Distance(int64_t row, int64_t seed, const float* mean) const {
    double common = 0;
    for (uint32_t col : masks_.Of(row)) common += mean[col];
    return static_cast<double>(masks_.Of(row).size() + masks_.Of(seed).size()) - 2 * common;
  }

  bool Assign() {
    const std::vector<float> nearness = Nearness();
    std::vector<uint32_t> order(masks_.rows());
    std::vector<float> losses(masks_.rows());
    for (int64_t row = 0; row < masks_.rows(); ++row)
      losses[row] = Loss(std::span(nearness).subspan(row * groups_, groups_));
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, std::greater<>(), [&](uint32_t row) { return losses[row]; });
    std::vector<int64_t> places(groups_);
    for (int64_t group = 0; group < groups_; ++group) places[group] = Size(group);
    bool moved = false;
    for (uint32_t row : order) {
      int64_t best = -1;
      for (int64_t group = 0; group < groups_; ++group) {
        if (places[group] == 0) continue;
        if (best < 0 || nearness[row * groups_ + group] > nearness[row * groups_ + best]) best = group;
      }
      --places[best];
      moved = moved || group_of_[row] != best;
      group_of_[row] = best;
    }
    return moved;
  }

  // Of every row to every group: the larger the nearer; of squared distances what depends on the group, over -2.
  std::vector<float> Nearness() const {
    std::vector<float> nearness(masks_.rows() * groups_);
    for (int64_t group = 0; group < groups_; ++group) {
      const float* const mean = means_.data() + group * masks_.cols();
      const float norm = std::inner_product(mean, mean + masks_.cols(), mean, 0.0f);
      for (int64_t row = 0; row < masks_.rows(); ++row) {
        float common = 0;
        for (uint32_t col : masks_.Of(row)) common += mean[col];
        nearness[row * groups_ + group] = common - norm / 2;
      }
    }
    return nearness;
  }

  // Between the nearest group and the next.
  static float Loss(std::span<const float> nearness) {
    float first = -INFINITY, second = -INFINITY;
    for (const float near : nearness) {
      second = std::max(second, std::min(first, near));
      first = std::max(first, near);
    }
    return nearness.size() < 2 ? 0.0f : first - second;
  }

  const RowPatterns& masks_;
  const int64_t vector_rows_, groups_;
  std::vector<float> means_;
  std::vector<int64_t> group_of_;
};

double Kept(const WeightView& weights, std::span<const uint32_t> order, int64_t vector_rows, double sparsity) {
  std::vector<float> copy(weights.values.begin(), weights.values.end());
  const WeightView left{weights.rows, weights.cols, copy, weights.scores};
  PruneVectors(left, order, vector_rows, sparsity);
  return SumOfScores(left);
}

}  // namespace

std::vector<uint32_t> FindRowOrder(const WeightView& weights, int64_t vector_rows, double sparsity) {
  std::vector<uint32_t> best(weights.rows);
  std::iota(best.begin(), best.end(), 0u);
  if (weights.rows <= vector_rows || weights.cols == 0) return best;
  double most = Kept(weights, best, vector_rows, sparsity);
  const RowPatterns masks = MasksOf(weights, 2 * (1 - sparsity));
  BalancedClusters clusters(masks, vector_rows);
  for (int i = 0; i < kMostIterations && clusters.Iterate(); ++i) {
    std::vector<uint32_t> order = clusters.Order();
    const double kept = Kept(weights, order, vector_rows, sparsity);
    if (kept > most) most = kept, best = std::move(order);
  }
  return best;
}

}  // namespace swizzle
