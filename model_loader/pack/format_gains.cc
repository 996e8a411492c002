#include "model_loader/pack/format_gains.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace swizzle::pack {
namespace {

using Times = std::vector<double>;  // by batch

void TakeLesser(const Times& times, Times& least) {
  for (size_t b = 0; b < least.size(); ++b) least[b] = std::min(least[b], times[b]);
}

void Add(const Times& times, Times& sums) {
  for (size_t b = 0; b < sums.size(); ++b) sums[b] += times[b];
}

// Of the fastest candidates that read each format.
std::map<Format, Times> FastestByFormat(const LayerReport& layer, size_t batches) {
  std::map<Format, Times> fastest;
  for (const LayerReport::KernelTimes& candidate : layer.candidates) {
    if (candidate.weights == Format::kNone || candidate.microseconds.size() != batches) continue;
    Times& least =
        fastest.try_emplace(candidate.weights, batches, std::numeric_limits<double>::infinity()).first->second;
    TakeLesser(candidate.microseconds, least);
  }
  return fastest;
}

}  // namespace

std::vector<FormatGain> GainsOfFormats(const PlanReport& plan) {
  const size_t batches = plan.measured_batches.size();
  std::map<Format, FormatGain> by_format;
  for (const LayerReport& layer : plan.layers) {
    const std::map<Format, Times> fastest = FastestByFormat(layer, batches);
    const auto dense = std::ranges::find_if(fastest, [](const auto& entry) { return !IsSparse(entry.first); });
    if (batches == 0 || dense == fastest.end()) continue;
    for (const auto& [format, times] : fastest) {
      if (!IsSparse(format)) continue;
      FormatGain& gain =
          by_format.try_emplace(format, FormatGain{format, 0, Times(batches), Times(batches)}).first->second;
      ++gain.layers;
      Add(times, gain.microseconds);
      Add(dense->second, gain.dense_microseconds);
    }
  }
  std::vector<FormatGain> gains;
  for (auto& [format, gain] : by_format) gains.push_back(std::move(gain));
  return gains;
}

}  // namespace swizzle::pack
