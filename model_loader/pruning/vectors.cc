#include "model_loader/pruning/vectors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/base/check.h"
#include "kernels/base/integers.h"

namespace swizzle {
namespace {

constexpr double kLeastScore = -std::numeric_limits<double>::infinity();

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

// What is not a number is never pruned before what is.
double ScoreOf(const WeightView& weights, int64_t i) {
  if (!weights.scores.empty()) return weights.scores[i];
  const double magnitude = std::abs(static_cast<double>(weights.values[i]));
  return std::isnan(magnitude) ? INFINITY : magnitude;
}

// Zeros the cells of least mean score; entry i lies in cell_of(i).
template <typename CellOf>
void PruneCells(const WeightView& weights, int64_t cells, double sparsity, const CellOf& cell_of) {
  const int64_t elements = weights.rows * weights.cols;
  std::vector<double> scores(cells), entries(cells);
  std::vector<bool> live(cells);
  for (int64_t i = 0; i < elements; ++i) {
    const int64_t cell = cell_of(i);
    entries[cell] += 1;
    if (weights.values[i] == 0) continue;
    scores[cell] += ScoreOf(weights, i);
    live[cell] = true;
  }
  for (int64_t cell = 0; cell < cells; ++cell) scores[cell] = live[cell] ? scores[cell] / entries[cell] : kLeastScore;
  const std::vector<bool> pruned = Least(scores, sparsity);
  for (int64_t i = 0; i < elements; ++i) {
    if (pruned[cell_of(i)]) weights.values[i] = 0.0f;
  }
}

}  // namespace

void PruneVectors(const WeightView& weights, std::span<const uint32_t> row_order, int64_t vector_rows,
                  double sparsity) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0 && vector_rows >= 1);
  std::vector<int64_t> group_of(weights.rows);
  for (int64_t place = 0; place < weights.rows; ++place) group_of[row_order[place]] = place / vector_rows;
  PruneCells(weights, CeilDiv(weights.rows, vector_rows) * weights.cols, sparsity,
             [&](int64_t i) { return group_of[i / weights.cols] * weights.cols + i % weights.cols; });
}

void PruneBlocks(const WeightView& weights, int64_t size, double sparsity) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0 && size >= 1);
  SWIZZLE_CHECK(weights.taps >= 1 && weights.cols % weights.taps == 0);
  const int64_t across = CeilDiv(weights.cols / weights.taps, size);  // of a row's channels, for each tap
  PruneCells(weights, CeilDiv(weights.rows, size) * weights.taps * across, sparsity, [&](int64_t i) {
    const int64_t row = i / weights.cols, channel = i % weights.cols / weights.taps, tap = i % weights.taps;
    return (row / size * weights.taps + tap) * across + channel / size;
  });
}

void PruneNOfM(const WeightView& weights, int64_t n, int64_t m) {
  SWIZZLE_CHECK(n >= 1 && n <= m && weights.taps >= 1 && weights.cols % weights.taps == 0);
  const int64_t channels = weights.cols / weights.taps;
  const auto score = [&](int64_t i) { return weights.values[i] == 0 ? kLeastScore : ScoreOf(weights, i); };
  std::vector<int64_t> group;
  for (int64_t line = 0; line < weights.rows * weights.taps; ++line) {
    const int64_t begin = line / weights.taps * weights.cols + line % weights.taps;
    for (int64_t channel = 0; channel < channels; channel += m) {
      group.clear();
      for (int64_t c = channel; c < std::min(channels, channel + m); ++c) group.push_back(begin + c * weights.taps);
      std::ranges::stable_sort(group, {}, score);
      for (int64_t i = 0; i + n < static_cast<int64_t>(group.size()); ++i) weights.values[group[i]] = 0.0f;
    }
  }
}

double SumOfMagnitudes(std::span<const float> weights) {
  return std::transform_reduce(weights.begin(), weights.end(), 0.0, std::plus<>(),
                               [](float weight) { return std::abs(static_cast<double>(weight)); });
}

double SumOfScores(const WeightView& weights) {
  if (weights.scores.empty()) return SumOfMagnitudes(weights.values);
  double sum = 0;
  for (size_t i = 0; i < weights.scores.size(); ++i) sum += weights.values[i] == 0 ? 0.0 : weights.scores[i];
  return sum;
}

}  // namespace swizzle
