// Which positions of its input an axis of kResize takes, and with what weights: one truth for all that resize. Pure
// functions, for GPUs' kernels too; ONNX's Resize has the formulas.
//
// Sizes, and which position is the nearest, are worked out in single precision as ONNX Runtime does: a scale of 0.7 is
// a little less than that, 0.7 of 10 are 7 all the same, and a position halfway between two is there exactly.
#ifndef SWIZZLE_KERNELS_OPERATOR_RESAMPLING_H_
#define SWIZZLE_KERNELS_OPERATOR_RESAMPLING_H_

#include <cmath>
#include <cstdint>

#include "kernels/base/on_devices.h"
#include "kernels/operator/attributes.h"

namespace swizzle {

// One axis, in positions.
struct ResampledAxis {
  int64_t from = 1;    // of the input
  int64_t to = 1;      // of the output
  double scale = 1.0;  // above 0
};

// A length resized by `scale`.
inline float ScaledLength(int64_t from, float scale) { return std::floor(static_cast<float>(from) * scale); }

// `scale` as Resampling has it.
SWIZZLE_ON_DEVICES_TOO inline ResampledAxis AxisOf(int64_t from, int64_t to, float scale) {
  return {from, to, scale > 0.0f ? static_cast<double>(scale) : static_cast<double>(to) / static_cast<double>(from)};
}

// What an output position is made of: first * (1 - weight) + second * weight, positions of the input. Where the nearest
// is taken both are it, and the weight is 0.
struct ResampledTaps {
  int32_t first = 0, second = 0;
  float weight = 0.0f;
};

// Where output position `i` lies in the input; perhaps outside of it.
template <typename Real = double>
SWIZZLE_ON_DEVICES_TOO inline Real SourceOf(Coordinates coordinates, const ResampledAxis& axis, int64_t i) {
  const auto x = static_cast<Real>(i), scale = static_cast<Real>(axis.scale);
  constexpr Real kHalf = 0.5;
  if (coordinates == Coordinates::kAsymmetric) return x / scale;
  if (coordinates == Coordinates::kAlignCorners) {
    const Real length = scale * static_cast<Real>(axis.from);  // not rounded: so have ONNX's own tests
    return length > 1 ? x * static_cast<Real>(axis.from - 1) / (length - 1) : Real{0};
  }
  if (coordinates == Coordinates::kPytorchHalfPixel && axis.to <= 1) return 0;
  return (x + kHalf) / scale - kHalf;
}

// The nearest whole position, perhaps outside of the input. A half between two goes as the mode says.
SWIZZLE_ON_DEVICES_TOO inline double NearestOf(Nearest nearest, double x) {
  if (nearest == Nearest::kRoundPreferCeil) return std::floor(x + 0.5);
  if (nearest == Nearest::kFloor) return std::floor(x);
  if (nearest == Nearest::kCeil) return std::ceil(x);
  return std::ceil(x - 0.5);
}

// The position inside the input that stands for one that may lie outside: the nearest edge.
SWIZZLE_ON_DEVICES_TOO inline int32_t InsideOf(const ResampledAxis& axis, double position) {
  const auto last = static_cast<double>(axis.from - 1);
  return static_cast<int32_t>(position > 0 ? (position < last ? position : last) : 0);
}

SWIZZLE_ON_DEVICES_TOO inline ResampledTaps TapsOf(const Resampling& resampling, const ResampledAxis& axis, int64_t i) {
  if (!resampling.linear) {
    const auto source = SourceOf<float>(resampling.coordinates, axis, i);
    const int32_t at = InsideOf(axis, NearestOf(resampling.nearest, source));
    return {at, at, 0.0f};
  }
  const double x = SourceOf(resampling.coordinates, axis, i);
  const double base = std::floor(x);
  return {InsideOf(axis, base), InsideOf(axis, base + 1), static_cast<float>(x - base)};
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_RESAMPLING_H_
