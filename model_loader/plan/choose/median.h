// The median of a few measurements.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MEDIAN_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace swizzle {

// Of an even number the upper one of the two in the middle. REQUIRES: there are some.
inline double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MEDIAN_H_
