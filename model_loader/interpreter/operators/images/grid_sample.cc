// GridSample: an image read at the places that a grid names, which lie between its pixels.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {
namespace {

enum class Interpolation { kNearest, kLinear, kCubic };
enum class Outside { kZeros, kBorder, kReflection };

struct Sampling {
  Interpolation interpolation = Interpolation::kLinear;
  Outside outside = Outside::kZeros;
  bool align_corners = false;

  int taps() const {
    return interpolation == Interpolation::kNearest ? 1 : interpolation == Interpolation::kLinear ? 2 : 4;
  }
};

// Pixels along an axis, and their weights; -1: a zero outside of the image.
struct PixelTaps {
  std::array<int64_t, 4> pixel = {};
  std::array<float, 4> weight = {};
};

// Keys' cubic convolution with a = -0.75, of the four pixels around a place `t` behind the second.
std::array<float, 4> CubicWeights(float t) {
  constexpr float kA = -0.75f;
  const auto near = [](float x) { return ((kA + 2.0f) * x - (kA + 3.0f)) * x * x + 1.0f; };
  const auto far = [](float x) { return ((kA * x - 5.0f * kA) * x + 8.0f * kA) * x - 4.0f * kA; };
  return {far(1.0f + t), near(t), near(1.0f - t), far(2.0f - t)};
}

// The place between `low` and `high` that mirrors at both, again and again, lead to.
double Reflected(double at, double low, double high) {
  const double range = high - low;
  if (!(range > 0.0)) return low;
  const double folded = std::fmod(std::fabs(at - low), 2.0 * range);
  return low + (folded > range ? 2.0 * range - folded : folded);
}

int64_t PixelAt(int64_t pixel, int64_t size, const Sampling& sampling) {
  if (pixel >= 0 && pixel < size) return pixel;
  if (sampling.outside == Outside::kZeros) return -1;
  if (sampling.outside == Outside::kReflection) {
    const double edge = sampling.align_corners ? 0.0 : 0.5;
    const double reflected = Reflected(static_cast<double>(pixel), -edge, static_cast<double>(size - 1) + edge);
    pixel = static_cast<int64_t>(std::nearbyint(reflected));
  }
  return std::clamp<int64_t>(pixel, 0, size - 1);
}

// Of a coordinate from -1 to 1, or beyond.
PixelTaps TapsAt(float coordinate, int64_t size, const Sampling& sampling) {
  constexpr double kFar = 1e9;  // beyond all images, and what is not a number
  const double extent = static_cast<double>(size);
  double at =
      sampling.align_corners ? (coordinate + 1.0) / 2.0 * (extent - 1.0) : ((coordinate + 1.0) * extent - 1.0) / 2.0;
  at = at > -kFar ? std::min(at, kFar) : -kFar;
  PixelTaps taps;
  if (sampling.interpolation == Interpolation::kNearest) {
    taps.pixel[0] = PixelAt(static_cast<int64_t>(std::nearbyint(at)), size, sampling);
    taps.weight[0] = 1.0f;
    return taps;
  }
  const double floor = std::floor(at);
  const auto fraction = static_cast<float>(at - floor);
  const bool cubic = sampling.interpolation == Interpolation::kCubic;
  const int64_t first = static_cast<int64_t>(floor) - (cubic ? 1 : 0);
  if (cubic) {
    taps.weight = CubicWeights(fraction);
  } else {
    taps.weight = {1.0f - fraction, fraction};
  }
  for (int i = 0; i < sampling.taps(); ++i) {
    taps.pixel[static_cast<size_t>(i)] = PixelAt(first + i, size, sampling);
  }
  return taps;
}

StatusOr<Sampling> ReadSampling(const Call& call) {
  Sampling sampling;
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, call.String("mode", call.opset() < 20 ? "bilinear" : "linear"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string outside, call.String("padding_mode", "zeros"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t align_corners, call.Int("align_corners", 0));
  sampling.align_corners = align_corners != 0;
  if (mode == "nearest") {
    sampling.interpolation = Interpolation::kNearest;
  } else if (mode == "bicubic" || mode == "cubic") {
    sampling.interpolation = Interpolation::kCubic;
  } else if (mode != "bilinear" && mode != "linear") {
    return InvalidArgument("mode is '", mode, "'; it may be nearest, linear or cubic");
  }
  if (outside == "border") {
    sampling.outside = Outside::kBorder;
  } else if (outside == "reflection") {
    sampling.outside = Outside::kReflection;
  } else if (outside != "zeros") {
    return InvalidArgument("padding_mode is '", outside, "'; it may be zeros, border or reflection");
  }
  return sampling;
}

// One place of all planes of an image: `planes` of them, one behind the other.
void SampleAt(const Sampling& sampling, const float* image, const Shape& shape, const float* coordinates, float* to,
              int64_t to_step) {
  const int64_t channels = shape[1], height = shape[2], width = shape[3];
  const PixelTaps x = TapsAt(coordinates[0], width, sampling);
  const PixelTaps y = TapsAt(coordinates[1], height, sampling);
  const int taps = sampling.taps();
  for (int64_t c = 0; c < channels; ++c, image += height * width, to += to_step) {
    float sum = 0.0f;
    for (size_t i = 0; i < static_cast<size_t>(taps); ++i) {
      if (y.pixel[i] < 0) continue;
      const float* const row = image + y.pixel[i] * width;
      float along = 0.0f;
      for (size_t j = 0; j < static_cast<size_t>(taps); ++j) {
        if (x.pixel[j] >= 0) along += x.weight[j] * row[x.pixel[j]];
      }
      sum += y.weight[i] * along;
    }
    *to = sum;
  }
}

}  // namespace

StatusOr<Array> GridSample(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Sampling sampling, ReadSampling(call));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array grid, call.Floats(1));
  if (x.rank() == 5) return Unimplemented("volumes are not supported, only images of 4 dimensions");
  if (x.rank() != 4 || grid.rank() != 4 || grid.shape[3] != 2 || grid.shape[0] != x.shape[0]) {
    return InvalidArgument("image and grid have shapes ", ShapeText(x.shape), " and ", ShapeText(grid.shape),
                           "; they must be [batch,channels,height,width] and [batch,height,width,2]");
  }
  if (x.shape[2] == 0 || x.shape[3] == 0) return InvalidArgument("images of shape ", ShapeText(x.shape), " are empty");
  const int64_t places = grid.shape[1] * grid.shape[2], channels = x.shape[1];
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, {x.shape[0], channels, grid.shape[1], grid.shape[2]}));
  cpu::CpuStream::From(call.stream()).ParallelRanges(x.shape[0] * places, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / places;
      SampleAt(sampling, x.As<float>().data() + image * channels * x.shape[2] * x.shape[3], x.shape,
               grid.As<float>().data() + i * 2, y.Mutable<float>().data() + image * channels * places + i % places,
               places);
    }
  });
  return call.As(y, call.In(0).dtype);
}

}  // namespace swizzle::interpreter
