// What a value was seen to be while a model ran on calibration data, and the whole numbers that suit it. Two rounds
// over the same data: the range first, then a histogram within it. Value types; the same data gives the same result.
#ifndef SWIZZLE_MODEL_LOADER_QUANTISING_OBSERVER_H_
#define SWIZZLE_MODEL_LOADER_QUANTISING_OBSERVER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/quantised.h"

namespace swizzle {

// How the range of whole numbers is chosen: all that was seen, all but one value in 10,000, or so that the mean squared
// error is least.
enum class ObserverKind : uint8_t { kMinMax, kPercentile, kMse };

std::string_view ObserverName(ObserverKind kind);  // "minmax"
std::optional<ObserverKind> ObserverFromName(std::string_view name);
std::vector<std::string> ObserverNames();

class Observer {
 public:
  // The first round. Values that are not finite do not count.
  void SeeRange(std::span<const float> values);
  // The second, of the same values, which are [channels, plane].
  void SeeValues(std::span<const float> values, int64_t channels);

  // UINT8 for values between the bounds, 0 among them. REQUIRES: both rounds are over.
  Quantised Choose(ObserverKind kind) const;
  // UINT8 for all that either holds: the one that holds the other, where one does.
  static Quantised Spanning(const Quantised& a, const Quantised& b);
  // Of what was seen, if it were stored as `quantised`: signal over noise, in decibels.
  double SignalToNoise(const Quantised& quantised) const;
  // Of each channel.
  std::vector<double> Means() const;

 private:
  struct Bounds {
    double low = 0.0;
    double high = 0.0;
  };
  static Quantised Within(Bounds bounds);
  double SquaredError(const Quantised& quantised) const;
  double Centre(size_t bin) const;
  Bounds Percentile() const;
  Bounds LeastError() const;

  Bounds seen_;
  std::vector<int64_t> histogram_;  // of equal bins from seen_.low to seen_.high
  std::vector<double> sums_;        // by channel
  int64_t count_ = 0;               // of each channel
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_QUANTISING_OBSERVER_H_
