// What ends detectors: choosing boxes, and reading features inside them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {
namespace {

// --- NonMaxSuppression ---

struct Box {
  double top, left, bottom, right;

  double area() const { return (bottom - top) * (right - left); }
};

// Any two opposite corners, or the centre and the extents.
Box BoxOf(const float* box, bool centred) {
  if (centred) {
    const double half_width = box[2] / 2.0, half_height = box[3] / 2.0;
    return {box[1] - half_height, box[0] - half_width, box[1] + half_height, box[0] + half_width};
  }
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]), std::max(box[1], box[3])};
}

// Whether the boxes share more than this part of what they cover together.
bool Overlap(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0.0) || !(width > 0.0) || !(a.area() > 0.0) || !(b.area() > 0.0)) return false;
  const double shared = height * width;
  return shared > threshold * (a.area() + b.area() - shared);
}

struct Suppression {
  bool centred = false;
  int64_t most = 0;  // boxes kept of each class
  double overlap = 0.0;
  double score = -std::numeric_limits<double>::infinity();  // what scores must be above
};

// The kept ones of `count` boxes, best first, into `kept`; returns how many. `candidates` has room for all.
int64_t Suppress(const Suppression& s, const float* boxes, const float* scores, int64_t count, int64_t* candidates,
                 int64_t* kept) {
  int64_t* end = candidates;
  for (int64_t i = 0; i < count; ++i) {
    if (static_cast<double>(scores[i]) > s.score) *end++ = i;
  }
  std::sort(candidates, end,
            [scores](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  int64_t found = 0;
  for (const int64_t* candidate = candidates; candidate != end && found < s.most; ++candidate) {
    const Box box = BoxOf(boxes + *candidate * 4, s.centred);
    const bool hidden = std::any_of(kept, kept + found, [&](int64_t other) {
      return Overlap(box, BoxOf(boxes + other * 4, s.centred), s.overlap);
    });
    if (!hidden) kept[found++] = *candidate;
  }
  return found;
}

StatusOr<Suppression> ReadSuppression(Call& call, int64_t boxes) {
  Suppression s;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t centred, call.Int("center_point_box", 0));
  s.centred = centred != 0;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t most, call.IntScalar(2, 0));
  s.most = std::clamp<int64_t>(most, 0, boxes);
  SWIZZLE_ASSIGN_OR_RETURN(s.overlap, call.RealScalar(3, 0.0));
  if (!(s.overlap >= 0.0 && s.overlap <= 1.0)) {
    return InvalidArgument("iou_threshold is ", s.overlap, "; it must be between 0 and 1");
  }
  // Without a threshold, too, what is not a number is not chosen.
  SWIZZLE_ASSIGN_OR_RETURN(s.score, call.RealScalar(4, s.score));
  return s;
}

// --- RoiAlign ---

// Two neighbours along an axis that a sample lies between, and their weights: 0 outside of the image.
struct AxisTap {
  int32_t low = 0, high = 0;
  float low_weight = 0.0f, high_weight = 0.0f;
};

AxisTap TapAt(double at, int64_t size) {
  if (!(at >= -1.0 && at <= static_cast<double>(size))) return {};
  at = std::clamp(at, 0.0, static_cast<double>(size - 1));
  const auto low = static_cast<int32_t>(at);
  const auto high = static_cast<int32_t>(std::min<int64_t>(low + 1, size - 1));
  const auto weight = static_cast<float>(at - low);
  return {low, high, 1.0f - weight, weight};
}

// One axis of a region: bins of so many samples each.
struct AxisBins {
  double start = 0.0, bin = 0.0;
  int64_t samples = 0;

  void Fill(int64_t bins, int64_t size, AxisTap* taps) const {
    for (int64_t b = 0; b < bins; ++b) {
      for (int64_t i = 0; i < samples; ++i) {
        const double in_bin = (static_cast<double>(i) + 0.5) / static_cast<double>(samples);
        *taps++ = TapAt(start + bin * (static_cast<double>(b) + in_bin), size);
      }
    }
  }
};

struct RoiAlignment {
  int64_t height = 1, width = 1;  // of the result
  int64_t sampling = 0;
  double scale = 1.0;
  bool half_pixel = true;
  bool largest = false;

  StatusOr<AxisBins> BinsOf(double begin, double end, int64_t bins) const;
};

constexpr int64_t kMaxSamples = 1024;  // a bin and axis: some hundred are much

StatusOr<AxisBins> RoiAlignment::BinsOf(double begin, double end, int64_t bins) const {
  const double shift = half_pixel ? 0.5 : 0.0;
  double extent = (end - begin) * scale;
  if (!half_pixel) extent = std::max(extent, 1.0);
  AxisBins axis{begin * scale - shift, extent / static_cast<double>(bins), sampling};
  if (sampling > 0) return axis;
  const double samples = std::ceil(axis.bin);
  if (!std::isfinite(axis.start) || !(samples <= kMaxSamples)) {
    return InvalidArgument("a region from ", begin, " to ", end, " has more than ", kMaxSamples, " samples a bin");
  }
  axis.samples = std::max<int64_t>(static_cast<int64_t>(samples), 0);
  return axis;
}

StatusOr<RoiAlignment> ReadRoiAlignment(const Call& call) {
  RoiAlignment align;
  SWIZZLE_ASSIGN_OR_RETURN(align.height, call.Int("output_height", 1));
  SWIZZLE_ASSIGN_OR_RETURN(align.width, call.Int("output_width", 1));
  SWIZZLE_ASSIGN_OR_RETURN(align.sampling, call.Int("sampling_ratio", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const float scale, call.Float("spatial_scale", 1.0f));
  align.scale = scale;
  const char* const absent = call.opset() < 16 ? "output_half_pixel" : "half_pixel";
  SWIZZLE_ASSIGN_OR_RETURN(const std::string corners, call.String("coordinate_transformation_mode", absent));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, call.String("mode", "avg"));
  if (corners != "half_pixel" && corners != "output_half_pixel") {
    return InvalidArgument("coordinate_transformation_mode is '", corners,
                           "'; it may be half_pixel or output_half_pixel");
  }
  if (mode != "avg" && mode != "max") return InvalidArgument("mode is '", mode, "'; it may be avg or max");
  if (align.height < 1 || align.width < 1) return InvalidArgument("output_height and output_width must be positive");
  if (align.sampling < 0 || align.sampling > kMaxSamples) {
    return InvalidArgument("sampling_ratio is ", align.sampling, "; it may be 0 to ", kMaxSamples);
  }
  align.half_pixel = corners == "half_pixel";
  align.largest = mode == "max";
  return align;
}

// The regions, checked: along each axis its bins, and of which image it is.
struct Region {
  AxisBins y, x;
  int64_t image = 0;
};

StatusOr<std::vector<Region>> ReadRegions(Call& call, const RoiAlignment& align, int64_t images) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array rois, call.Floats(1));
  if (rois.rank() != 2 || rois.shape[1] != 4) {
    return InvalidArgument("input 1 has shape ", ShapeText(rois.shape), "; it must be [regions,4]");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> image_of, call.List(2));
  if (static_cast<int64_t>(image_of.size()) != rois.shape[0]) {
    return InvalidArgument("there are ", image_of.size(), " batch indices for ", rois.shape[0], " regions");
  }
  std::vector<Region> regions;
  for (size_t i = 0; i < image_of.size(); ++i) {
    if (image_of[i] < 0 || image_of[i] >= images) return InvalidArgument("there is no image ", image_of[i]);
    const float* const roi = rois.As<float>().data() + i * 4;
    Region& region = regions.emplace_back(Region{{}, {}, image_of[i]});
    SWIZZLE_ASSIGN_OR_RETURN(region.y, align.BinsOf(roi[1], roi[3], align.height));
    SWIZZLE_ASSIGN_OR_RETURN(region.x, align.BinsOf(roi[0], roi[2], align.width));
  }
  return regions;
}

// One bin of a plane: the mean of its samples, or the largest of what they are the sums of.
float Pool(const AxisTap* y, int64_t y_count, const AxisTap* x, int64_t x_count, const float* plane, int64_t width,
           bool largest) {
  float sum = 0.0f, best = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < y_count; ++i) {
    const float* const low = plane + y[i].low * width;
    const float* const high = plane + y[i].high * width;
    for (int64_t j = 0; j < x_count; ++j) {
      const float parts[] = {
          y[i].low_weight * x[j].low_weight * low[x[j].low], y[i].low_weight * x[j].high_weight * low[x[j].high],
          y[i].high_weight * x[j].low_weight * high[x[j].low], y[i].high_weight * x[j].high_weight * high[x[j].high]};
      sum += parts[0] + parts[1] + parts[2] + parts[3];
      best = std::max(best, *std::max_element(std::begin(parts), std::end(parts)));
    }
  }
  const int64_t count = y_count * x_count;
  if (largest) return count > 0 ? best : 0.0f;
  return sum / static_cast<float>(std::max<int64_t>(count, 1));
}

}  // namespace

StatusOr<Array> NonMaxSuppression(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array boxes, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array scores, call.Floats(1));
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.shape[2] != 4 || boxes.shape[0] != scores.shape[0] ||
      boxes.shape[1] != scores.shape[2]) {
    return InvalidArgument("boxes and scores have shapes ", ShapeText(boxes.shape), " and ", ShapeText(scores.shape),
                           "; they must be [batch,boxes,4] and [batch,classes,boxes]");
  }
  const int64_t count = boxes.shape[1], classes = scores.shape[1], lists = boxes.shape[0] * classes;
  SWIZZLE_ASSIGN_OR_RETURN(const Suppression suppression, ReadSuppression(call, count));
  cpu::CpuStream& stream = cpu::CpuStream::From(call.stream());
  SWIZZLE_ASSIGN_OR_RETURN(Array candidates, call.New(DType::kInt64, {stream.threads(), count}));
  SWIZZLE_ASSIGN_OR_RETURN(Array kept, call.New(DType::kInt64, {lists, suppression.most}));
  SWIZZLE_ASSIGN_OR_RETURN(Array found, call.New(DType::kInt64, {lists}));
  stream.ParallelRanges(lists, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t list = begin; list < end; ++list) {
      found.Mutable<int64_t>()[static_cast<size_t>(list)] =
          Suppress(suppression, boxes.As<float>().data() + list / classes * count * 4,
                   scores.As<float>().data() + list * count, count, candidates.Mutable<int64_t>().data() + slot * count,
                   kept.Mutable<int64_t>().data() + list * suppression.most);
    }
  });
  const auto counts = found.As<int64_t>();
  const int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  SWIZZLE_ASSIGN_OR_RETURN(Array chosen, call.New(DType::kInt64, {total, 3}));
  int64_t* to = chosen.Mutable<int64_t>().data();
  for (int64_t list = 0; list < lists; ++list) {
    for (int64_t i = 0; i < counts[static_cast<size_t>(list)]; ++i) {
      *to++ = list / classes;
      *to++ = list % classes;
      *to++ = kept.As<int64_t>()[static_cast<size_t>(list * suppression.most + i)];
    }
  }
  return chosen;
}

StatusOr<Array> RoiAlign(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const RoiAlignment align, ReadRoiAlignment(call));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  if (x.rank() != 4 || x.shape[2] == 0 || x.shape[3] == 0) {
    return InvalidArgument("input 0 has shape ", ShapeText(x.shape), "; it must be [batch,channels,height,width]");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Region> regions, ReadRegions(call, align, x.shape[0]));
  const int64_t channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  SWIZZLE_ASSIGN_OR_RETURN(
      Array y, call.New(DType::kFloat32, {static_cast<int64_t>(regions.size()), channels, align.height, align.width}));
  int64_t y_samples = 0, x_samples = 0;
  for (const Region& region : regions) {
    y_samples = std::max(y_samples, region.y.samples);
    x_samples = std::max(x_samples, region.x.samples);
  }
  cpu::CpuStream& stream = cpu::CpuStream::From(call.stream());
  const auto bytes = static_cast<int64_t>(sizeof(AxisTap));
  SWIZZLE_ASSIGN_OR_RETURN(Array y_taps, call.New(DType::kUint8, {stream.threads(), align.height, y_samples, bytes}));
  SWIZZLE_ASSIGN_OR_RETURN(Array x_taps, call.New(DType::kUint8, {stream.threads(), align.width, x_samples, bytes}));
  stream.ParallelRanges(static_cast<int64_t>(regions.size()), [&](int64_t slot, int64_t begin, int64_t end) {
    AxisTap* const ys = reinterpret_cast<AxisTap*>(y_taps.data.get()) + slot * align.height * y_samples;
    AxisTap* const xs = reinterpret_cast<AxisTap*>(x_taps.data.get()) + slot * align.width * x_samples;
    for (int64_t r = begin; r < end; ++r) {
      const Region& region = regions[static_cast<size_t>(r)];
      region.y.Fill(align.height, height, ys);
      region.x.Fill(align.width, width, xs);
      float* to = y.Mutable<float>().data() + r * channels * align.height * align.width;
      for (int64_t c = 0; c < channels; ++c) {
        const float* const plane = x.As<float>().data() + (region.image * channels + c) * height * width;
        for (int64_t bin = 0; bin < align.height * align.width; ++bin) {
          *to++ = Pool(ys + bin / align.width * region.y.samples, region.y.samples,
                       xs + bin % align.width * region.x.samples, region.x.samples, plane, width, align.largest);
        }
      }
    }
  });
  return call.As(y, call.In(0).dtype);
}

}  // namespace swizzle::interpreter
