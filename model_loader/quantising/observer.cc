#include "model_loader/quantising/observer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

constexpr size_t kBins = 4096;
constexpr int kSteps = 255;
constexpr double kOutside = 1e-4;  // of all values, at both ends together
constexpr std::array<std::pair<ObserverKind, std::string_view>, 3> kNames = {
    {{ObserverKind::kMinMax, "minmax"}, {ObserverKind::kPercentile, "percentile"}, {ObserverKind::kMse, "mse"}}};

}  // namespace

std::string_view ObserverName(ObserverKind kind) {
  return std::ranges::find(kNames, kind, [](const auto& row) { return row.first; })->second;
}

std::optional<ObserverKind> ObserverFromName(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, [](const auto& row) { return row.second; });
  return found == kNames.end() ? std::nullopt : std::optional(found->first);
}

std::vector<std::string> ObserverNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kNames));
  for (const auto& row : kNames) names.emplace_back(row.second);
  return names;
}

void Observer::SeeRange(std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    seen_.low = std::min(seen_.low, double{value});
    seen_.high = std::max(seen_.high, double{value});
  }
}

void Observer::SeeValues(std::span<const float> values, int64_t channels) {
  histogram_.resize(kBins);
  sums_.resize(static_cast<size_t>(channels));
  const auto plane = static_cast<int64_t>(values.size()) / channels;
  const double bins = seen_.high > seen_.low ? static_cast<double>(kBins) / (seen_.high - seen_.low) : 0.0;
  for (int64_t c = 0; c < channels; ++c) {
    for (const float value : values.subspan(static_cast<size_t>(c * plane), static_cast<size_t>(plane))) {
      if (!std::isfinite(value)) continue;
      const double bin = std::clamp((value - seen_.low) * bins, 0.0, static_cast<double>(kBins - 1));
      ++histogram_[static_cast<size_t>(bin)];
      sums_[static_cast<size_t>(c)] += value;
    }
  }
  count_ += plane;
}

std::vector<double> Observer::Means() const {
  std::vector<double> means = sums_;
  for (double& mean : means) mean /= static_cast<double>(std::max<int64_t>(count_, 1));
  return means;
}

Quantised Observer::Within(Bounds bounds) {
  bounds = {std::min(bounds.low, 0.0), std::max(bounds.high, 0.0)};
  const auto scale = static_cast<float>((bounds.high - bounds.low) / kSteps);
  // What is always zero, or so small that its steps would be denormal, is stored as zeros.
  if (!(scale >= std::numeric_limits<float>::min())) return {DType::kUint8, 1.0f, 0};
  const double zero_point = std::nearbyint(-bounds.low / scale);
  return {DType::kUint8, scale, static_cast<int32_t>(std::clamp(zero_point, 0.0, double{kSteps}))};
}

double Observer::Centre(size_t bin) const {
  return seen_.low + (static_cast<double>(bin) + 0.5) * (seen_.high - seen_.low) / static_cast<double>(kBins);
}

double Observer::SquaredError(const Quantised& quantised) const {
  double error = 0.0;
  for (size_t bin = 0; bin < histogram_.size(); ++bin) {
    if (histogram_[bin] == 0) continue;
    const double value = Centre(bin);
    const double whole = std::nearbyint(value / quantised.scale) + quantised.zero_point;
    const double held = std::clamp(whole, 0.0, double{kSteps});
    const double distance = value - quantised.scale * (held - quantised.zero_point);
    // Within a step values stand anywhere, not only in the middle of their bin.
    const double spread = whole == held ? quantised.scale * quantised.scale / 12.0 : distance * distance;
    error += static_cast<double>(histogram_[bin]) * spread;
  }
  return error;
}

Quantised Observer::Spanning(const Quantised& a, const Quantised& b) {
  const RealRange first = RangeOf(a), second = RangeOf(b);
  if (first.low <= second.low && first.high >= second.high) return a;
  if (second.low <= first.low && second.high >= first.high) return b;
  return Within({std::min(first.low, second.low), std::max(first.high, second.high)});
}

double Observer::SignalToNoise(const Quantised& quantised) const {
  double signal = 0.0;
  for (size_t bin = 0; bin < histogram_.size(); ++bin) {
    signal += static_cast<double>(histogram_[bin]) * Centre(bin) * Centre(bin);
  }
  const double noise = SquaredError(quantised);
  if (signal == 0.0 || noise == 0.0) return std::numeric_limits<double>::infinity();
  return 10.0 * std::log10(signal / noise);
}

Observer::Bounds Observer::Percentile() const {
  int64_t total = 0;
  for (const int64_t count : histogram_) total += count;
  auto outside = static_cast<int64_t>(kOutside * static_cast<double>(total));
  size_t first = 0, last = histogram_.size() - 1;
  // From the end that is further from 0, so that neither loses more than it has to.
  while (first < last) {
    const bool take_low = -Centre(first) > Centre(last);
    const int64_t dropped = histogram_[take_low ? first : last];
    if (dropped > outside) break;
    outside -= dropped;
    if (take_low) {
      ++first;
    } else {
      --last;
    }
  }
  const double half = (seen_.high - seen_.low) / static_cast<double>(kBins) / 2;
  return {Centre(first) - half, Centre(last) + half};
}

Observer::Bounds Observer::LeastError() const {
  constexpr int kTries = 80;
  Bounds best = seen_;
  double least = SquaredError(Within(seen_));
  for (int i = kTries / 5; i < kTries; ++i) {
    const double part = static_cast<double>(i) / kTries;
    const Bounds bounds = {seen_.low * part, seen_.high * part};
    const double error = SquaredError(Within(bounds));
    if (error < least) std::tie(least, best) = std::pair(error, bounds);
  }
  return best;
}

Quantised Observer::Choose(ObserverKind kind) const {
  if (histogram_.empty() || kind == ObserverKind::kMinMax) return Within(seen_);
  return Within(kind == ObserverKind::kPercentile ? Percentile() : LeastError());
}

}  // namespace swizzle
