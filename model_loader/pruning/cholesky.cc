#include "model_loader/pruning/cholesky.h"

#include <algorithm>
#include <cmath>

namespace swizzle {
namespace {

constexpr int64_t kPanel = 48;    // rows of U that are taken off what is left at once
constexpr int64_t kStrip = 512;   // columns: a panel's strip stays in a first or second cache
constexpr int64_t kTogether = 4;  // of a panel's rows, for each load and store of what is left

// row[begin..end) -= sum over i of factors[i] * rows[i][begin..end).
void TakeOff(double* __restrict row, const double* const (&rows)[kTogether], const double (&factors)[kTogether],
             int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    row[j] -= factors[0] * rows[0][j] + factors[1] * rows[1][j] + (factors[2] * rows[2][j] + factors[3] * rows[3][j]);
  }
}

// What rows [first, last) of U, which are done, take off row i from column `begin` on. U's column i holds the factors.
void TakeRowsOff(double* matrix, int64_t n, int64_t first, int64_t last, int64_t i, int64_t begin, int64_t end) {
  double* const row = matrix + i * n;
  int64_t k = first;
  for (; k + kTogether <= last; k += kTogether) {
    const double* const u = matrix + k * n;
    TakeOff(row, {u, u + n, u + 2 * n, u + 3 * n}, {u[i], u[n + i], u[2 * n + i], u[3 * n + i]}, begin, end);
  }
  for (; k < last; ++k) {
    const double* const u = matrix + k * n;
    for (int64_t j = begin; j < end; ++j) row[j] -= u[i] * u[j];
  }
}

bool FactorisePanel(double* matrix, int64_t n, int64_t first, int64_t last) {
  for (int64_t k = first; k < last; ++k) {
    TakeRowsOff(matrix, n, first, k, k, k, n);
    double* const row = matrix + k * n;
    if (!(row[k] > 0) || !std::isfinite(row[k])) return false;
    const double scale = 1.0 / std::sqrt(row[k]);
    for (int64_t j = k; j < n; ++j) row[j] *= scale;
  }
  return true;
}

// x of U^T x = b: forwards, for `b` that is zero before `first`.
void SolveForwards(const double* factor, int64_t n, double* b, int64_t first) {
  for (int64_t i = first; i < n; ++i) {
    const double* const u = factor + i * n;
    const double x = b[i] /= u[i];
    for (int64_t j = i + 1; j < n; ++j) b[j] -= x * u[j];
  }
}

// Backwards, for U x = b down to x[last].
void SolveBackwards(const double* factor, int64_t n, double* b, int64_t last) {
  for (int64_t i = n - 1; i >= last; --i) {
    const double* const u = factor + i * n;
    b[i] = (b[i] - Dot(u + i + 1, b + i + 1, n - i - 1)) / u[i];
  }
}

}  // namespace

double Dot(const double* a, const double* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < n; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

bool Factorise(std::span<double> matrix, int64_t n) {
  double* const data = matrix.data();
  for (int64_t first = 0; first < n; first += kPanel) {
    const int64_t last = std::min(n, first + kPanel);
    if (!FactorisePanel(data, n, first, last)) return false;
    for (int64_t strip = last; strip < n; strip += kStrip) {
      const int64_t end = std::min(n, strip + kStrip);
      for (int64_t i = last; i < end; ++i) TakeRowsOff(data, n, first, last, i, std::max(i, strip), end);
    }
  }
  return true;
}

void Solve(std::span<const double> factor, int64_t n, std::span<double> b) {
  SolveForwards(factor.data(), n, b.data(), 0);
  SolveBackwards(factor.data(), n, b.data(), 0);
}

std::vector<double> Inverse(std::span<const double> factor, int64_t n) {
  std::vector<double> inverse(n * n);
  for (int64_t i = 0; i < n; ++i) {
    double* const row = inverse.data() + i * n;
    row[i] = 1;
    SolveForwards(factor.data(), n, row, i);
    SolveBackwards(factor.data(), n, row, i);  // the rest follows, as the inverse is symmetric
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) inverse[i * n + j] = inverse[j * n + i];
  }
  return inverse;
}

}  // namespace swizzle
