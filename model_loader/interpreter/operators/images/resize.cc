// Resize and Upsample: one dimension after the other, each output position a weighted sum of at most four inputs.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>

#include "kernels/operator/resampling.h"
#include "model_loader/interpreter/operators/images/smoothing.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/rows.h"
#include "model_loader/interpreter/values/strided.h"
#include "model_loader/semantics/resampling_modes.h"

namespace swizzle::interpreter {
namespace {

struct Settings {
  std::string mode, coordinates;
  std::optional<swizzle::Nearest> nearest;  // none: as it was before there was a choice
  float cubic = -0.75f, outside_value = 0.0f;
  bool exclude_outside = false;
  bool antialias = false;  // only of modes that mix neighbours
};

// How one dimension is resized.
struct Axis {
  int64_t from = 0, to = 0;
  double scale = 1.0;
  double start = 0.0, end = 1.0;  // of the region of interest, as shares
};

struct Tap {
  int64_t at = 0;  // -1: the value outside
  float weight = 0.0f;
};

template <typename Real>
Real SourceOf(const Settings& settings, const Axis& axis, int64_t i) {
  if (const auto coordinates = CoordinatesNamed(settings.coordinates)) {
    return swizzle::SourceOf<Real>(*coordinates, {axis.from, axis.to, axis.scale}, i);
  }
  constexpr Real kHalf = 0.5;
  const auto x = static_cast<Real>(i), scale = static_cast<Real>(axis.scale);
  const auto from = static_cast<Real>(axis.from), to = static_cast<Real>(axis.to);
  const auto start = static_cast<Real>(axis.start), end = static_cast<Real>(axis.end);
  if (settings.coordinates == "tf_half_pixel_for_nn") return (x + kHalf) / scale;
  if (settings.coordinates == "tf_crop_and_resize") {
    if (to <= 1) return kHalf * (start + end) * (from - 1);
    return start * (from - 1) + x * (end - start) * (from - 1) / (to - 1);
  }
  const Real centre = from / 2 * (1 - to / (scale * from));  // half_pixel_symmetric
  return centre + (x + kHalf) / scale - kHalf;
}

// Keys' kernel, at distances 1 + f, f, 1 - f, 2 - f.
std::vector<float> CubicWeights(double f, double a) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {static_cast<float>(far(1 + f)), static_cast<float>(near(f)), static_cast<float>(near(1 - f)),
          static_cast<float>(far(2 - f))};
}

// What output position i is made of.
std::vector<Tap> TapsOf(const Settings& settings, const Axis& axis, int64_t i) {
  const bool nearest = settings.mode == "nearest";
  const double exact = nearest ? SourceOf<float>(settings, axis, i) : SourceOf<double>(settings, axis, i);
  const double x = std::isnan(exact) ? 0.0 : std::clamp(exact, -1e9, 1e9);
  const int64_t last = axis.from - 1;
  if (settings.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(last))) return {{-1, 1.0f}};
  if (nearest) {
    const swizzle::Nearest which = settings.nearest.value_or(NearestBeforeOpset11(axis.scale));
    return {{std::clamp<int64_t>(static_cast<int64_t>(NearestOf(which, x)), 0, last), 1.0f}};
  }
  const double base = std::floor(x);
  const double fraction = x - base;
  std::vector<float> weights = {static_cast<float>(1 - fraction), static_cast<float>(fraction)};
  auto at = static_cast<int64_t>(base);
  if (settings.mode == "cubic") {
    weights = CubicWeights(fraction, settings.cubic);
    --at;
  }
  std::vector<Tap> taps;
  float total = 0.0f;
  for (const float weight : weights) {
    const bool outside = at < 0 || at > last;
    const bool counts = !(outside && settings.exclude_outside && settings.mode == "cubic");
    if (counts) taps.push_back({std::clamp<int64_t>(at, 0, last), weight});
    if (counts) total += weight;
    ++at;
  }
  if (settings.exclude_outside && settings.mode == "cubic") {
    for (Tap& tap : taps) tap.weight /= total;
  }
  return taps;
}

// What an output position is made of.
struct Taps {
  std::array<Tap, 4> taps = {};
  int count = 0;
  float start = 0.0f;  // what they are added to

  bool is_copy() const { return count == 1 && taps[0].weight == 1.0f && start == 0.0f; }
};

// Those of all output positions, in memory that is counted: a small array may become a long one.
struct TapTable {
  Array memory;
  std::span<const Taps> all;
};

StatusOr<TapTable> AllTaps(Call& call, const Settings& settings, const Axis& axis) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Taps));
  TapTable table;
  SWIZZLE_ASSIGN_OR_RETURN(table.memory, call.New(DType::kUint8, {axis.to, kBytes}));
  auto* const all = reinterpret_cast<Taps*>(table.memory.data.get());
  for (int64_t i = 0; i < axis.to; ++i) {
    Taps& taps = *std::construct_at(all + i);
    for (const Tap& tap : TapsOf(settings, axis, i)) {
      if (tap.at < 0) {
        taps.start = settings.outside_value;
      } else {
        taps.taps[taps.count++] = tap;
      }
    }
  }
  table.all = {all, static_cast<size_t>(axis.to)};
  return table;
}

// The resized dimension is the last one.
void ResizeElements(std::span<const Taps> all, const float* from, float* to) {
  for (const Taps& taps : all) {
    float sum = taps.start;
    for (int i = 0; i < taps.count; ++i) sum += taps.taps[i].weight * from[taps.taps[i].at];
    *to++ = sum;
  }
}

// How often each input position is repeated, all as often and in order; 0 where they are not.
int64_t Repeats(std::span<const Taps> all, int64_t from) {
  const auto to = static_cast<int64_t>(all.size());
  if (to % from != 0) return 0;
  const int64_t times = to / from;
  for (int64_t i = 0; i < to; ++i) {
    if (!all[i].is_copy() || all[i].taps[0].at != i / times) return 0;
  }
  return times;
}

// Likewise ResizeElements, of `count` positions that are repeated.
void RepeatElements(const float* from, int64_t count, int64_t times, float* to) {
  if (times == 2) {
    for (int64_t i = 0; i < count; ++i) to[2 * i] = to[2 * i + 1] = from[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i, to += times) std::fill_n(to, times, from[i]);
}

// `inner` neighbours of one position of the resized dimension.
void AddTaps(const Taps& taps, const float* from, int64_t inner, float* to) {
  if (taps.is_copy()) {
    std::copy_n(from + taps.taps[0].at * inner, inner, to);
    return;
  }
  std::fill_n(to, inner, taps.start);
  for (int i = 0; i < taps.count; ++i) {
    const float* tap = from + taps.taps[i].at * inner;
    const float weight = taps.taps[i].weight;
    for (int64_t j = 0; j < inner; ++j) to[j] += weight * tap[j];
  }
}

StatusOr<Array> ResizeAxisOnDevice(Call& call, const Settings& settings, const Array& x, int64_t d, const Axis& axis,
                                   Array y) {
  SWIZZLE_ASSIGN_OR_RETURN(Array table,
                           call.NewTable(DType::kUint8, {axis.to, static_cast<int64_t>(sizeof(WeightedTaps))}));
  auto* const all = reinterpret_cast<WeightedTaps*>(table.data.get());
  for (int64_t i = 0; i < axis.to; ++i) {
    WeightedTaps& taps = *std::construct_at(all + i);
    for (const Tap& tap : TapsOf(settings, axis, i)) {
      if (tap.at < 0) {
        taps.start = settings.outside_value;
        continue;
      }
      taps.at[taps.count] = static_cast<int32_t>(tap.at);
      taps.weights[taps.count++] = tap.weight;
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(table, call.Placed(table));
  call.device()->functions().Resize({.outer = ProductOf(x.shape, 0, d),
                                     .from_size = axis.from,
                                     .to_size = axis.to,
                                     .inner = ProductOf(x.shape, d + 1, x.rank()),
                                     .taps = reinterpret_cast<const WeightedTaps*>(table.data.get()),
                                     .from = reinterpret_cast<const float*>(x.data.get()),
                                     .to = reinterpret_cast<float*>(y.data.get())},
                                    call.stream());
  return y;
}

// The FP32 array with dimension `d` resized.
StatusOr<Array> ResizeAxis(Call& call, const Settings& settings, const Array& x, int64_t d, const Axis& axis) {
  Shape shape = x.shape;
  shape[static_cast<size_t>(d)] = axis.to;
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, shape));
  if (y.elements() == 0) return y;
  if (axis.from == 0) return InvalidArgument("dimension ", d, " is empty and cannot become ", axis.to);
  if (settings.antialias) {
    return ResizeSmoothly(call, x, d, std::move(y),
                          {axis.from, axis.to, axis.scale, settings.mode == "cubic", settings.cubic,
                           settings.exclude_outside, [&](int64_t i) { return SourceOf<double>(settings, axis, i); }});
  }
  if (call.device() != nullptr) return ResizeAxisOnDevice(call, settings, x, d, axis, std::move(y));
  SWIZZLE_ASSIGN_OR_RETURN(const TapTable table, AllTaps(call, settings, axis));
  const std::span<const Taps> taps = table.all;
  Rows rows{.array = {}, .order = {}, .count = ProductOf(x.shape, 0, d), .length = ProductOf(shape, d, y.rank())};
  const int64_t inner = rows.length / axis.to;
  const float* from = x.As<float>().data();
  float* to = y.Mutable<float>().data();
  if (inner == 1) {
    const int64_t times = Repeats(taps, axis.from);
    ForEachRow(call, rows, [&](int64_t row) {
      const float* const in = from + row * axis.from;
      float* const out = to + row * axis.to;
      times > 0 ? RepeatElements(in, axis.from, times, out) : ResizeElements(taps, in, out);
    });
    return y;
  }
  rows.count *= axis.to;
  rows.length = inner;
  ForEachRow(call, rows, [&](int64_t row) {
    AddTaps(taps[row % axis.to], from + row / axis.to * axis.from * inner, inner, to + row * inner);
  });
  return y;
}

StatusOr<std::string> OneOf(const Call& call, const std::string& name, const std::string& absent,
                            std::initializer_list<const char*> known) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string value, call.String(name, absent));
  for (const char* candidate : known) {
    if (value == candidate) return value;
  }
  return InvalidArgument(name, " '", value, "' is not supported");
}

StatusOr<Settings> ReadSettings(Call& call) {
  Settings settings;
  SWIZZLE_ASSIGN_OR_RETURN(settings.mode, OneOf(call, "mode", "nearest", {"nearest", "linear", "cubic", "bilinear"}));
  if (settings.mode == "bilinear") settings.mode = "linear";
  // Before opset 11 there was no choice.
  const bool old = call.opset() < 11;
  SWIZZLE_ASSIGN_OR_RETURN(settings.coordinates,
                           OneOf(call, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel",
                                 {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                  "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}));
  SWIZZLE_ASSIGN_OR_RETURN(
      const std::string nearest,
      OneOf(call, "nearest_mode", "round_prefer_floor", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  if (!old || call.HasAttribute("nearest_mode")) settings.nearest = NearestNamed(nearest);
  SWIZZLE_ASSIGN_OR_RETURN(settings.cubic, call.Float("cubic_coeff_a", -0.75f));
  SWIZZLE_ASSIGN_OR_RETURN(settings.outside_value, call.Float("extrapolation_value", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t exclude, call.Int("exclude_outside", 0));
  settings.exclude_outside = exclude != 0;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t antialias, call.Int("antialias", 0));
  settings.antialias = antialias != 0 && settings.mode != "nearest";
  return settings;
}

// The axes that are resized: all, or from opset 18 on those named.
StatusOr<std::vector<int64_t>> ResizedAxes(const Call& call, int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  SWIZZLE_ASSIGN_OR_RETURN(axes, call.Ints("axes", axes));
  for (int64_t& axis : axes) {
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(axis, rank));
  }
  return axes;
}

// Input i as a list of numbers, empty where it is left out.
StatusOr<std::vector<float>> FloatList(Call& call, size_t i) {
  if (!call.Has(i)) return std::vector<float>();
  SWIZZLE_ASSIGN_OR_RETURN(const Array list, call.Floats(i));
  if (list.rank() != 1) return InvalidArgument("input ", i, " must be a list");
  const auto values = list.As<float>();
  return std::vector<float>(values.begin(), values.end());
}

// The scale of all axes, where sizes are bounds within or beyond which the proportions are kept.
StatusOr<std::optional<double>> CommonScale(Call& call, const Shape& shape, const std::vector<int64_t>& axes,
                                            const std::vector<int64_t>& sizes) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string policy, OneOf(call, "keep_aspect_ratio_policy", "stretch",
                                                           {"stretch", "not_larger", "not_smaller"}));
  std::optional<double> common;
  if (policy == "stretch") return common;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double scale =
        static_cast<double>(sizes[i]) / static_cast<double>(std::max<int64_t>(shape[static_cast<size_t>(axes[i])], 1));
    if (!common || (policy == "not_larger") == (scale < *common)) common = scale;
  }
  return common;
}

// The scales and sizes of `axes` from their inputs, those that are not empty.
Status ReadSizes(Call& call, size_t scales_input, const Shape& shape, const std::vector<int64_t>& axes,
                 std::vector<Axis>& result) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> scales, FloatList(call, scales_input));
  std::vector<int64_t> sizes;
  if (call.Has(3)) {
    SWIZZLE_ASSIGN_OR_RETURN(sizes, call.List(3));
  }
  if (scales.empty() == sizes.empty()) return InvalidArgument("it needs either scales or sizes");
  if (scales.size() + sizes.size() != axes.size())
    return InvalidArgument("there must be one scale or size a dimension");
  SWIZZLE_ASSIGN_OR_RETURN(const std::optional<double> common, CommonScale(call, shape, axes, sizes));
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis axis;
    axis.from = shape[static_cast<size_t>(axes[i])];
    if (sizes.empty()) {
      const float size = ScaledLength(axis.from, scales[i]);
      if (!(scales[i] > 0.0f) || !(size < 2147483648.0f)) return InvalidArgument("a scale is ", scales[i]);
      axis.scale = scales[i];
      axis.to = static_cast<int64_t>(size);
    } else {
      if (sizes[i] < 0) return InvalidArgument("a size is ", sizes[i]);
      axis.scale =
          common.value_or(static_cast<double>(sizes[i]) / static_cast<double>(std::max<int64_t>(axis.from, 1)));
      axis.to = common ? static_cast<int64_t>(std::floor(*common * static_cast<double>(axis.from) + 0.5)) : sizes[i];
    }
    result.push_back(axis);
  }
  return {};
}

StatusOr<Array> ResizeAll(Call& call, const Settings& settings, const std::vector<int64_t>& axes,
                          const std::vector<Axis>& sizes) {
  SWIZZLE_ASSIGN_OR_RETURN(Array x, call.Floats(0));
  for (size_t k = 0; k < axes.size(); ++k) {
    // Neighbours are the same in any order: the dimension of single elements, which is dearest, then has the fewest.
    const size_t i = settings.mode == "nearest" ? axes.size() - 1 - k : k;
    const bool same =
        sizes[i].to == sizes[i].from && sizes[i].scale == 1.0 && sizes[i].start == 0.0 && sizes[i].end == 1.0;
    if (same) continue;
    SWIZZLE_ASSIGN_OR_RETURN(x, ResizeAxis(call, settings, x, axes[i], sizes[i]));
  }
  const DType dtype = call.In(0).dtype;
  if (settings.antialias && !IsFloating(dtype)) RoundTo(dtype, x);
  return call.As(x, dtype);
}

}  // namespace

StatusOr<Array> Resize(Call& call) {
  const int64_t rank = call.In(0).rank();
  SWIZZLE_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(call));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ResizedAxes(call, rank));
  std::vector<Axis> sizes;
  SWIZZLE_RETURN_IF_ERROR(ReadSizes(call, call.opset() < 11 ? 1 : 2, call.In(0).shape, axes, sizes));
  if (settings.coordinates == "tf_crop_and_resize") {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<float> region, FloatList(call, 1));
    if (region.size() != 2 * axes.size()) return InvalidArgument("the region of interest has the wrong length");
    for (size_t i = 0; i < axes.size(); ++i) {
      sizes[i].start = region[i];
      sizes[i].end = region[i + axes.size()];
    }
  }
  return ResizeAll(call, settings, axes, sizes);
}

StatusOr<Array> Upsample(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const Settings settings, ReadSettings(call));
  std::vector<float> scales;
  if (call.opset() >= 9) {
    SWIZZLE_ASSIGN_OR_RETURN(scales, FloatList(call, 1));
  } else {
    SWIZZLE_ASSIGN_OR_RETURN(scales, FloatsAttribute(call.node(), "scales"));
  }
  if (static_cast<int64_t>(scales.size()) != x.rank()) return InvalidArgument("there must be one scale a dimension");
  std::vector<int64_t> axes(scales.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::vector<Axis> sizes;
  for (size_t i = 0; i < scales.size(); ++i) {
    const float size = ScaledLength(x.shape[i], scales[i]);
    if (!(scales[i] >= 1.0f) || !(size < 2147483648.0f)) return InvalidArgument("a scale is ", scales[i]);
    sizes.push_back({x.shape[i], static_cast<int64_t>(size), scales[i]});
  }
  return ResizeAll(call, settings, axes, sizes);
}

}  // namespace swizzle::interpreter
