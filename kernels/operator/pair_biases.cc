#include "kernels/operator/pair_biases.h"

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

}  // namespace swizzle
