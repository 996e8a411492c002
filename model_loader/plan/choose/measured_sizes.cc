#include "model_loader/plan/choose/measured_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle {
namespace {

constexpr size_t kStep = 3;  // sizes from one that is measured first to the next

std::vector<int64_t> UsualCounts(bool sequences, bool device) {
  const int64_t least = sequences ? 64 : 1;
  if (!device) return {least, 8 * least};
  std::vector<int64_t> counts;
  for (int64_t count = least; count <= 64 * least; count *= 2) counts.push_back(count);
  return counts;
}

}  // namespace

std::vector<int64_t> MeasuredCounts(const Network& network, BatchSize max, bool device,
                                    std::span<const int64_t> wanted) {
  const bool sequences = network.sequences.has_value();
  const auto takes_whole = [](const Layer& layer) {
    const bool by_pairs = IsAttention(layer.op) && layer.attention().length > 0;
    return by_pairs || TraitsOf(layer.op).Has(OpTraits::kMakesTokens);
  };
  const bool is_whole = std::ranges::any_of(network.layers, takes_whole);
  if (!sequences && network.batch_size > 0) return {network.batch_size};
  std::vector<int64_t> counts = UsualCounts(sequences, device);
  if (!sequences && !wanted.empty()) counts.assign(wanted.begin(), wanted.end());
  if (is_whole) {
    for (int64_t& count : counts) count = RoundUp(count, network.sequences->length);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  }
  int64_t most = sequences ? max.tokens : max.rows;
  if (is_whole) {
    const int64_t length = network.sequences->length;
    most = std::min(std::max(most - most % length, length), max.rows * length);
  }
  const auto first = std::ranges::lower_bound(counts, most);
  if (first == counts.end()) return counts;
  *first = most;
  counts.erase(first + 1, counts.end());
  return counts;
}

std::vector<BatchSize> MeasuredSizes(const Network& network, BatchSize max, std::span<const int64_t> counts) {
  constexpr int64_t kLength = 128;
  std::vector<BatchSize> sizes;
  sizes.reserve(counts.size());
  for (const int64_t count : counts) {
    if (!network.sequences) {
      sizes.emplace_back(count);
      continue;
    }
    const int64_t length = network.sequences->length > 0 ? network.sequences->length : kLength;
    sizes.emplace_back(std::min(CeilDiv(count, length), max.rows), count);
  }
  return sizes;
}

std::vector<int64_t> BucketLimits(std::span<const int64_t> measured, int64_t most) {
  std::vector<int64_t> limits;
  for (size_t i = 0; i + 1 < measured.size(); ++i) {
    const double middle = std::sqrt(static_cast<double>(measured[i]) * static_cast<double>(measured[i + 1]));
    limits.push_back(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(middle))));
  }
  limits.push_back(most);
  return limits;
}

std::optional<Neighbours> NeighboursOf(size_t place, size_t sizes) {
  if (sizes <= kStep + 1 || place % kStep == 0 || place + 1 == sizes) return std::nullopt;
  const size_t below = place - place % kStep;
  return Neighbours{below, std::min(below + kStep, sizes - 1)};
}

std::vector<size_t> MeasuringOrder(size_t sizes) {
  std::vector<size_t> order(sizes);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [=](size_t place) { return !NeighboursOf(place, sizes).has_value(); });
  return order;
}

double TimeBetween(BatchSize below, double time_below, BatchSize above, double time_above, BatchSize size) {
  const auto log = [](BatchSize of) { return std::log(static_cast<double>(of.tokens)); };
  const double share = (log(size) - log(below)) / (log(above) - log(below));
  return time_below * std::pow(time_above / time_below, share);
}

}  // namespace swizzle
