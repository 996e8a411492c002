#include "model_loader/pruning/vectors.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/check.h"
#include "kernels/base/integers.h"

namespace swizzle {
namespace {

// The `count` of least score, the first of equal ones first, are true.
std::vector<bool> Least(const std::vector<double>& scores, double share) {
  const auto count = static_cast<int64_t>(std::llround(share * static_cast<double>(scores.size())));
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] < scores[b]; });
  std::vector<bool> least(scores.size());
  for (int64_t i = 0; i < count; ++i) least[order[i]] = true;
  return least;
}

// Magnitudes; what is not a number is never pruned before what is.
double Score(float weight) {
  const double magnitude = std::abs(static_cast<double>(weight));
  return std::isnan(magnitude) ? INFINITY : magnitude;
}

}  // namespace

void PruneVectors(const WeightView& weights, std::span<const uint32_t> row_order, int64_t vector_rows,
                  double sparsity) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0 && vector_rows >= 1);
  const int64_t groups = CeilDiv(weights.rows, vector_rows);
  std::vector<double> scores(groups * weights.cols);
  for (int64_t place = 0; place < weights.rows; ++place) {
    const int64_t group = place / vector_rows, members = std::min(vector_rows, weights.rows - group * vector_rows);
    const float* const row = weights.values.data() + row_order[place] * weights.cols;
    for (int64_t col = 0; col < weights.cols; ++col) {
      scores[group * weights.cols + col] += Score(row[col]) / static_cast<double>(members);
    }
  }
  const std::vector<bool> pruned = Least(scores, sparsity);
  for (int64_t place = 0; place < weights.rows; ++place) {
    float* const row = weights.values.data() + row_order[place] * weights.cols;
    for (int64_t col = 0; col < weights.cols; ++col) {
      if (pruned[place / vector_rows * weights.cols + col]) row[col] = 0.0f;
    }
  }
}

void PruneBlocks(const WeightView& weights, int64_t size, double sparsity) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0 && size >= 1);
  const int64_t across = CeilDiv(weights.cols, size);
  std::vector<double> scores(CeilDiv(weights.rows, size) * across), entries(scores.size());
  const auto block_of = [&](int64_t i) { return i / weights.cols / size * across + i % weights.cols / size; };
  for (int64_t i = 0; i < weights.rows * weights.cols; ++i) {
    scores[block_of(i)] += Score(weights.values[i]);
    entries[block_of(i)] += 1;
  }
  for (size_t i = 0; i < scores.size(); ++i) scores[i] /= entries[i];
  const std::vector<bool> pruned = Least(scores, sparsity);
  for (int64_t i = 0; i < weights.rows * weights.cols; ++i) {
    if (pruned[block_of(i)]) weights.values[i] = 0.0f;
  }
}

double SumOfMagnitudes(std::span<const float> weights) {
  return std::transform_reduce(weights.begin(), weights.end(), 0.0, std::plus<>(),
                               [](float weight) { return std::abs(static_cast<double>(weight)); });
}

}  // namespace swizzle
