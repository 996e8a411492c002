#include "model_loader/pruning/magnitude.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/base/check.h"

namespace swizzle {
namespace {

constexpr uint32_t kSignBit = 0x80000000u;

// The bits of |x|: ordered as the magnitudes are, and total, with what is not a number last.
uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & ~kSignBit; }

// Ordered as the numbers are. That of no number is 0.
uint32_t Rank(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

// What decides in which order weights go.
std::vector<uint32_t> RanksOf(std::span<const float> weights, std::span<const float> scores) {
  std::vector<uint32_t> ranks(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    ranks[i] = scores.empty() ? Magnitude(weights[i]) : weights[i] == 0 ? 0 : Rank(scores[i]);
  }
  return ranks;
}

// The `count`-th smallest. REQUIRES: 1 <= count <= ranks.size().
uint32_t Smallest(std::vector<uint32_t> ranks, size_t count) {
  const auto nth = ranks.begin() + static_cast<int64_t>(count - 1);
  std::nth_element(ranks.begin(), nth, ranks.end());
  return *nth;
}

}  // namespace

void PruneSmallest(std::span<float> weights, double sparsity, std::span<const float> scores) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0 && (scores.empty() || scores.size() == weights.size()));
  const auto zeros = static_cast<size_t>(std::llround(sparsity * static_cast<double>(weights.size())));
  if (zeros == 0) return;
  const std::vector<uint32_t> ranks = RanksOf(weights, scores);
  const uint32_t threshold = Smallest(ranks, zeros);
  size_t ties = zeros - static_cast<size_t>(std::ranges::count_if(ranks, [&](uint32_t r) { return r < threshold; }));
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool tie = ranks[i] == threshold && ties > 0;
    if (tie) --ties;
    if (tie || ranks[i] < threshold) weights[i] = 0.0f;
  }
}

}  // namespace swizzle
