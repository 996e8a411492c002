#include "kernels/operator/place_vectors.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace swizzle {
namespace {

std::span<const float> LeastDistances(const DenseMatrix& vectors) {
  return {vectors.values.data() + (vectors.rows - 1) * vectors.cols, static_cast<size_t>(vectors.cols)};
}

}  // namespace

DistancePlaces::DistancePlaces(const DenseMatrix& vectors) {
  const auto starts = LeastDistances(vectors);
  // One before the second place's, so that the first has a distance of its own.
  least_ = static_cast<int64_t>(starts.size() > 1 ? starts[1] : starts[0]) - 1;
  const int64_t greatest = static_cast<int64_t>(starts.back());
  int32_t place = 0;
  for (int64_t distance = least_; distance <= std::max(least_, greatest); ++distance) {
    const size_t next = static_cast<size_t>(place) + 1;
    if (next < starts.size() && static_cast<int64_t>(starts[next]) <= distance) ++place;
    places_.push_back(place);
  }
}

int32_t DistancePlaces::At(int64_t distance) const {
  return places_[static_cast<size_t>(std::clamp(distance, least_, greatest()) - least_)];
}

bool AreLeastDistances(const DenseMatrix& vectors) {
  const auto starts = LeastDistances(vectors);
  for (size_t i = 0; i < starts.size(); ++i) {
    if (!(std::abs(starts[i]) <= static_cast<float>(kMostPlaceDistance)) || starts[i] != std::floor(starts[i])) {
      return false;
    }
    if (i > 0 && !(starts[i] > starts[i - 1])) return false;
  }
  return true;
}

}  // namespace swizzle
