#include "model_loader/pruning/magnitude.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernels/base/check.h"

namespace swizzle {
namespace {

// The bits of |x|: ordered as the magnitudes are, and total, with what is not a number last.
uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFu; }

// The `count`-th smallest magnitude. REQUIRES: 1 <= count <= weights.size().
uint32_t MagnitudeOfRank(std::span<const float> weights, size_t count) {
  std::vector<uint32_t> magnitudes(weights.size());
  std::transform(weights.begin(), weights.end(), magnitudes.begin(), Magnitude);
  const auto nth = magnitudes.begin() + static_cast<int64_t>(count - 1);
  std::nth_element(magnitudes.begin(), nth, magnitudes.end());
  return *nth;
}

}  // namespace

void PruneSmallest(std::span<float> weights, double sparsity) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0);
  const auto zeros = static_cast<size_t>(std::llround(sparsity * static_cast<double>(weights.size())));
  if (zeros == 0) return;
  const uint32_t threshold = MagnitudeOfRank(weights, zeros);
  const auto below = [&](float weight) { return Magnitude(weight) < threshold; };
  size_t ties = zeros - static_cast<size_t>(std::count_if(weights.begin(), weights.end(), below));
  for (float& weight : weights) {
    const bool tie = Magnitude(weight) == threshold && ties > 0;
    if (tie) --ties;
    if (tie || below(weight)) weight = 0.0f;
  }
}

}  // namespace swizzle
