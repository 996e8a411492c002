#include "model_loader/pruning/least_squares.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "kernels/base/check.h"
#include "model_loader/pruning/cholesky.h"

namespace swizzle {
namespace {

constexpr double kDamping = 0.01;        // of the mean diagonal
constexpr double kMostExactWork = 4e12;  // multiply-adds of one layer: minutes

std::vector<double> Damped(const InputMoments& moments) {
  std::vector<double> hessian = moments.sums;
  const int64_t n = moments.inputs;
  double trace = 0;
  for (int64_t i = 0; i < n; ++i) trace += hessian[i * n + i];
  const double damping = trace > 0 ? kDamping * trace / static_cast<double>(n) : 1.0;
  for (int64_t i = 0; i < n; ++i) hessian[i * n + i] += damping;
  return hessian;
}

std::optional<std::vector<double>> InverseHessian(const InputMoments& moments) {
  std::vector<double> hessian = Damped(moments);
  if (!Factorise(hessian, moments.inputs)) return std::nullopt;
  return Inverse(hessian, moments.inputs);
}

// Rows by the columns that they keep.
using Groups = std::vector<std::vector<int64_t>>;

Groups RowsByMask(const WeightView& pruned) {
  std::map<std::vector<bool>, std::vector<int64_t>> rows;
  for (int64_t row = 0; row < pruned.rows; ++row) {
    std::vector<bool> mask(pruned.cols);
    for (int64_t col = 0; col < pruned.cols; ++col) mask[col] = pruned.values[row * pruned.cols + col] != 0;
    rows[std::move(mask)].push_back(row);
  }
  Groups groups;
  for (auto& [mask, members] : rows) groups.push_back(std::move(members));
  return groups;
}

std::vector<int64_t> KeptColumns(const WeightView& pruned, int64_t row) {
  std::vector<int64_t> kept;
  for (int64_t col = 0; col < pruned.cols; ++col) {
    if (pruned.values[row * pruned.cols + col] != 0) kept.push_back(col);
  }
  return kept;
}

// For each group H_kk x_k = (H w)_k, w being the row as it was.
void SolveGroup(const WeightView& pruned, std::span<const float> original, std::span<const double> hessian,
                const std::vector<int64_t>& rows) {
  const std::vector<int64_t> kept = KeptColumns(pruned, rows.front());
  const auto count = static_cast<int64_t>(kept.size());
  const int64_t cols = pruned.cols;
  std::vector<double> system(count * count), right(count), w(cols);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = i; j < count; ++j) system[i * count + j] = hessian[kept[i] * cols + kept[j]];
  }
  if (!Factorise(system, count)) return;
  for (const int64_t row : rows) {
    std::ranges::copy(original.subspan(row * cols, cols), w.begin());
    for (int64_t i = 0; i < count; ++i) {
      right[i] = Dot(hessian.data() + kept[i] * cols, w.data(), cols);
    }
    Solve(system, count, right);
    for (int64_t i = 0; i < count; ++i) pruned.values[row * cols + kept[i]] = static_cast<float>(right[i]);
  }
}

void SolveExactly(const WeightView& pruned, std::span<const float> original, const InputMoments& moments,
                  const ParallelFor& parallel) {
  const Groups groups = RowsByMask(pruned);
  const std::vector<double> hessian = Damped(moments);
  parallel(static_cast<int64_t>(groups.size()),
           [&](int64_t group) { SolveGroup(pruned, original, hessian, groups[group]); });
}

// Of the outputs that `weights` make, less those that `less` make where there are any.
double SquaredOutputs(std::span<const float> weights, std::span<const float> less, const InputMoments& moments,
                      const ParallelFor& parallel) {
  const int64_t n = moments.inputs, rows = n == 0 ? 0 : static_cast<int64_t>(weights.size()) / n;
  std::vector<double> squares(rows);
  parallel(rows, [&](int64_t row) {
    std::vector<double> w(weights.begin() + row * n, weights.begin() + (row + 1) * n);
    for (int64_t i = 0; i < n && !less.empty(); ++i) w[i] -= less[row * n + i];
    for (int64_t i = 0; i < n; ++i) {
      if (w[i] != 0) squares[row] += w[i] * Dot(moments.sums.data() + i * n, w.data(), n);
    }
  });
  return std::accumulate(squares.begin(), squares.end(), 0.0);
}

bool AllFinite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace

void InputMoments::Add(const InputMoments& other) {
  SWIZZLE_CHECK(inputs == other.inputs);
  std::ranges::transform(sums, other.sums, sums.begin(), std::plus<>());
}

std::vector<float> Saliencies(const WeightView& weights, const InputMoments& moments) {
  SWIZZLE_CHECK(moments.inputs == weights.cols);
  const std::optional<std::vector<double>> inverse = InverseHessian(moments);
  std::vector<float> saliencies(weights.values.size());
  for (size_t i = 0; i < saliencies.size(); ++i) {
    const auto col = static_cast<int64_t>(i) % weights.cols;
    const double weight = weights.values[i], scale = inverse ? (*inverse)[col * weights.cols + col] : 1.0;
    const double saliency = weight * weight / scale;
    saliencies[i] = std::isnan(saliency) ? INFINITY : static_cast<float>(saliency);
  }
  return saliencies;
}

Compensation CompensationFor(const WeightView& pruned) {
  double work = 0;
  for (const std::vector<int64_t>& rows : RowsByMask(pruned)) {
    const auto kept = static_cast<double>(KeptColumns(pruned, rows.front()).size());
    work += kept * kept * kept / 6 + static_cast<double>(rows.size()) * kept * static_cast<double>(pruned.cols);
  }
  return work <= kMostExactWork ? Compensation::kExact : Compensation::kSweep;
}

void SweepColumns(const WeightView& pruned, std::span<const float> original, const InputMoments& moments,
                  const ParallelFor& parallel) {
  std::optional<std::vector<double>> inverse = InverseHessian(moments);
  const int64_t cols = pruned.cols;
  if (!inverse || !Factorise(*inverse, cols)) return;
  parallel(pruned.rows, [&](int64_t row) {
    std::vector<double> w(original.begin() + row * cols, original.begin() + (row + 1) * cols);
    float* const to = pruned.values.data() + row * cols;
    for (int64_t col = 0; col < cols; ++col) {
      if (to[col] != 0) continue;
      const double* const u = inverse->data() + col * cols;
      const double error = w[col] / u[col];
      for (int64_t j = col; j < cols; ++j) w[j] -= error * u[j];
    }
    for (int64_t col = 0; col < cols; ++col) to[col] = to[col] != 0 ? static_cast<float>(w[col]) : 0.0f;
  });
}

OutputErrors Compensate(const WeightView& pruned, std::span<const float> original, const InputMoments& moments,
                        const ParallelFor& parallel) {
  SWIZZLE_CHECK(moments.inputs == pruned.cols && original.size() == pruned.values.size());
  const std::vector<float> uncompensated(pruned.values.begin(), pruned.values.end());
  const double whole = SquaredOutputs(original, {}, moments, parallel);
  const double before = SquaredOutputs(pruned.values, original, moments, parallel);
  const bool exact = CompensationFor(pruned) == Compensation::kExact;
  (exact ? SolveExactly : SweepColumns)(pruned, original, moments, parallel);
  double after = SquaredOutputs(pruned.values, original, moments, parallel);
  const bool lessens = AllFinite(pruned.values) && after < before;
  if (!lessens) {
    std::ranges::copy(uncompensated, pruned.values.begin());
    after = before;
  }
  return whole > 0 ? OutputErrors{before / whole, after / whole} : OutputErrors{};
}

}  // namespace swizzle
