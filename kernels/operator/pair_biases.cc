#include "kernels/operator/pair_biases.h"

#include <cstring>

namespace swizzle {

DistanceRange DistancesAttended(const DenseMatrix& biases, const Attention& attention) {
  DistanceRange range;
  if (attention.length > 0) return range;
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const auto attends = [&](int64_t column) {
    for (int64_t head = 0; head < biases.rows; ++head) {
      if (biases.values[head * biases.cols + column] != kNothing) return true;
    }
    return false;
  };
  // The first and the last column are of all distances beyond them, too.
  int64_t first = 0, last = biases.cols - 1;
  while (first <= last && !attends(first)) ++first;
  while (last > first && !attends(last)) --last;
  if (first > 0) range.least = first - attention.reach;
  if (last < biases.cols - 1) range.greatest = last - attention.reach;
  return range;
}

WindowBiases WindowBiasesOf(const DenseMatrix& biases, const Attention& attention) {
  const int64_t count = PairPlacesOf(attention).count();
  WindowBiases windows;
  const auto are_alike = [&](int64_t a, int64_t b) {
    for (int64_t head = 0; head < biases.rows; ++head) {
      const float* const row = biases.values.data() + head * biases.cols;
      if (std::memcmp(row + a, row + b, static_cast<size_t>(count) * sizeof(float)) != 0) return false;
    }
    return true;
  };
  for (int64_t window = 0; window < attention.windows; ++window) {
    const int64_t column = biases.cols == count ? 0 : window * count;
    size_t kind = 0;
    while (kind < windows.first_columns.size() && !are_alike(windows.first_columns[kind], column)) ++kind;
    if (kind == windows.first_columns.size()) windows.first_columns.push_back(column);
    windows.of_window.push_back(static_cast<int32_t>(kind));
  }
  return windows;
}

}  // namespace swizzle
