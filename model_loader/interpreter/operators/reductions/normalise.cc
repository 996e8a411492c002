// Normalisations.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/rows.h"

namespace swizzle::interpreter {
namespace {

struct Moments {
  double mean = 0.0, variance = 0.0;
};

// About 0 where they are not centred.
Moments MomentsOf(const float* x, int64_t count, bool centred = true) {
  Moments moments;
  for (int64_t i = 0; i < count && centred; ++i) moments.mean += x[i];
  moments.mean /= static_cast<double>(std::max<int64_t>(count, 1));
  for (int64_t i = 0; i < count; ++i) moments.variance += (x[i] - moments.mean) * (x[i] - moments.mean);
  moments.variance /= static_cast<double>(std::max<int64_t>(count, 1));
  return moments;
}

// Input i as FP32, checked to be a list of `length`.
StatusOr<Array> FloatList(Call& call, size_t i, int64_t length) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array list, call.Floats(i));
  if (list.shape == Shape{length}) return list;
  return InvalidArgument("input ", i, " has shape ", ShapeText(list.shape), "; it must be [", length, "]");
}

// y = scale[c] * x + shift[c] over planes of [N, C, ...].
template <typename Scale>
void ScalePlanes(const Array& x, const Scale& scale_of, Array& y) {
  const int64_t plane = ProductOf(x.shape, 2, x.rank());
  const int64_t channels = x.shape[1];
  const float* from = x.As<float>().data();
  float* to = y.Mutable<float>().data();
  for (int64_t i = 0; plane > 0 && i < x.shape[0] * channels; ++i, from += plane, to += plane) {
    const auto [scale, shift] = scale_of(i, static_cast<size_t>(i % channels), from, plane);
    for (int64_t j = 0; j < plane; ++j) to[j] = scale * from[j] + shift;
  }
}

std::pair<float, float> ScaleAndShift(const Moments& moments, double epsilon, float gamma, float beta) {
  const double scale = gamma / std::sqrt(moments.variance + epsilon);
  return {static_cast<float>(scale), static_cast<float>(beta - moments.mean * scale)};
}

// Input i spread over the last dimensions of `shape`, from `axis`, as FP32; `absent` everywhere where it is left out.
StatusOr<Array> Spread(Call& call, size_t i, const Shape& shape, int64_t axis, float absent) {
  const Shape tail(shape.begin() + axis, shape.end());
  SWIZZLE_ASSIGN_OR_RETURN(Array spread, call.New(DType::kFloat32, tail));
  const auto values = spread.Mutable<float>();
  std::fill(values.begin(), values.end(), absent);
  if (!call.Has(i)) return spread;
  SWIZZLE_ASSIGN_OR_RETURN(const Array given, call.Floats(i));
  const Shape shapes[] = {tail, given.shape};
  const StatusOr<Shape> shared = BroadcastShape(shapes);
  if (!shared.ok() || *shared != tail) {
    return InvalidArgument("input ", i, " has shape ", ShapeText(given.shape), ", which does not broadcast to ",
                           ShapeText(tail));
  }
  SWIZZLE_RETURN_IF_ERROR(CopyStrided(call, given, 0, BroadcastStrides(given.shape, tail), spread));
  return spread;
}

// What is normalised are all dimensions from an axis on; where nothing is centred, by the root of the mean square.
StatusOr<Results> NormaliseFromAxis(Call& call, bool centred) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, call.Float("epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(-1, x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const Array gamma, Spread(call, 1, x.shape, axis, 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const Array beta, Spread(call, 2, x.shape, axis, 0.0f));
  Shape reduced = x.shape;
  std::fill(reduced.begin() + axis, reduced.end(), 1);
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  SWIZZLE_ASSIGN_OR_RETURN(Array means, call.New(DType::kFloat32, reduced));
  SWIZZLE_ASSIGN_OR_RETURN(Array scales, call.New(DType::kFloat32, reduced));
  std::vector<int64_t> axes(static_cast<size_t>(x.rank() - axis));
  std::iota(axes.begin(), axes.end(), axis);
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, axes));
  ForEachRow(call, rows, [&](int64_t row) {
    const float* from = x.As<float>().data() + row * rows.length;
    float* to = y.Mutable<float>().data() + row * rows.length;
    const Moments moments = MomentsOf(from, rows.length, centred);
    const auto mean = static_cast<float>(moments.mean);
    const auto scale = static_cast<float>(1.0 / std::sqrt(moments.variance + epsilon));
    const float* g = gamma.As<float>().data();
    const float* b = beta.As<float>().data();
    for (int64_t i = 0; i < rows.length; ++i) to[i] = (from[i] - mean) * scale * g[i] + b[i];
    means.Mutable<float>()[static_cast<size_t>(row)] = mean;
    scales.Mutable<float>()[static_cast<size_t>(row)] = scale;
  });
  SWIZZLE_ASSIGN_OR_RETURN(y, call.As(y, call.In(0).dtype));
  return centred ? Results{y, means, scales} : Results{y, scales};
}

}  // namespace

StatusOr<Array> BatchNormalization(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t training, call.Int("training_mode", 0));
  if (training != 0) return Unimplemented("training_mode is not supported; export the model for inference");
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, call.Float("epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t spatial, call.Int("spatial", 1));
  if (spatial != 1) return Unimplemented("spatial 0 is not supported");
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 2));
  const int64_t channels = x.shape[1];
  SWIZZLE_ASSIGN_OR_RETURN(const Array gamma, FloatList(call, 1, channels));
  SWIZZLE_ASSIGN_OR_RETURN(const Array beta, FloatList(call, 2, channels));
  SWIZZLE_ASSIGN_OR_RETURN(const Array mean, FloatList(call, 3, channels));
  SWIZZLE_ASSIGN_OR_RETURN(const Array variance, FloatList(call, 4, channels));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  ScalePlanes(
      x,
      [&](int64_t, size_t c, const float*, int64_t) {
        const Moments moments{mean.As<float>()[c], variance.As<float>()[c]};
        return ScaleAndShift(moments, epsilon, gamma.As<float>()[c], beta.As<float>()[c]);
      },
      y);
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> InstanceNormalization(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, call.Float("epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 2));
  SWIZZLE_ASSIGN_OR_RETURN(const Array gamma, FloatList(call, 1, x.shape[1]));
  SWIZZLE_ASSIGN_OR_RETURN(const Array beta, FloatList(call, 2, x.shape[1]));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  ScalePlanes(
      x,
      [&](int64_t, size_t c, const float* from, int64_t plane) {
        return ScaleAndShift(MomentsOf(from, plane), epsilon, gamma.As<float>()[c], beta.As<float>()[c]);
      },
      y);
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> GroupNormalization(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, call.Float("epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t groups, call.Int("num_groups", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 3));
  const int64_t channels = x.shape[1], plane = ProductOf(x.shape, 2, x.rank());
  if (groups < 1 || groups > std::max<int64_t>(channels, 1) || channels % groups != 0) {
    return InvalidArgument(channels, " channels do not make ", groups, " groups");
  }
  const int64_t members = channels / groups;
  const bool per_group = call.opset() < 21;  // scale and bias of a group, later of a channel
  SWIZZLE_ASSIGN_OR_RETURN(const Array gamma, FloatList(call, 1, per_group ? groups : channels));
  SWIZZLE_ASSIGN_OR_RETURN(const Array beta, FloatList(call, 2, per_group ? groups : channels));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  Moments moments;
  ScalePlanes(
      x,
      [&](int64_t, size_t c, const float* from, int64_t) {
        const auto channel = static_cast<int64_t>(c);
        if (channel % members == 0) moments = MomentsOf(from, members * plane);
        const size_t at = per_group ? static_cast<size_t>(channel / members) : c;
        return ScaleAndShift(moments, epsilon, gamma.As<float>()[at], beta.As<float>()[at]);
      },
      y);
  return call.As(y, call.In(0).dtype);
}

StatusOr<Results> LayerNormalization(Call& call) { return NormaliseFromAxis(call, true); }

StatusOr<Results> RmsNormalization(Call& call) { return NormaliseFromAxis(call, false); }

StatusOr<Array> Lrn(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1e-4f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, call.Float("beta", 0.75f));
  SWIZZLE_ASSIGN_OR_RETURN(const float bias, call.Float("bias", 1.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t size, call.Int("size", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 2));
  if (size < 1 || size > (1 << 30)) return InvalidArgument("size is ", size, "; it must be at least 1");
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, x.shape));
  const int64_t channels = x.shape[1], plane = ProductOf(x.shape, 2, x.rank());
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  for (int64_t i = 0; i < x.shape[0] * channels; ++i) {
    const int64_t c = i % channels;
    const float* image = x.As<float>().data() + (i - c) * plane;
    const int64_t first = std::max<int64_t>(c - before, 0), last = std::min(c + after, channels - 1);
    for (int64_t j = 0; j < plane; ++j) {
      float sum = 0.0f;
      for (int64_t k = first; k <= last; ++k) sum += image[k * plane + j] * image[k * plane + j];
      const float scale = std::pow(bias + alpha / static_cast<float>(size) * sum, -beta);
      y.Mutable<float>()[static_cast<size_t>(i * plane + j)] = image[c * plane + j] * scale;
    }
  }
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> LpNormalization(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t p, call.Int("p", 2));
  if (p != 1 && p != 2) return InvalidArgument("p is ", p, "; it may be 1 or 2");
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(-1, x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, {axis}));
  SWIZZLE_ASSIGN_OR_RETURN(Array mapped, call.New(DType::kFloat32, rows.array.shape));
  ForEachRow(call, rows, [&](int64_t row) {
    const float* from = rows.array.As<float>().data() + row * rows.length;
    float* to = mapped.Mutable<float>().data() + row * rows.length;
    double norm = 0.0;
    for (int64_t i = 0; i < rows.length; ++i) norm += p == 1 ? std::fabs(from[i]) : from[i] * double{from[i]};
    if (p == 2) norm = std::sqrt(norm);
    for (int64_t i = 0; i < rows.length; ++i) to[i] = norm == 0.0 ? 0.0f : static_cast<float>(from[i] / norm);
  });
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, BackInOrder(call, rows, mapped));
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> MeanVarianceNormalization(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, call.Ints("axes", {0, 2, 3}));
  SWIZZLE_ASSIGN_OR_RETURN(axes, NormalAxes(std::move(axes), x.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const Rows rows, AlongAxes(call, x, axes));
  SWIZZLE_ASSIGN_OR_RETURN(Array mapped, call.New(DType::kFloat32, rows.array.shape));
  ForEachRow(call, rows, [&](int64_t row) {
    const float* from = rows.array.As<float>().data() + row * rows.length;
    float* to = mapped.Mutable<float>().data() + row * rows.length;
    const Moments moments = MomentsOf(from, rows.length);
    const auto [scale, shift] = ScaleAndShift(moments, 1e-18, 1.0f, 0.0f);
    for (int64_t i = 0; i < rows.length; ++i) to[i] = scale * from[i] + shift;
  });
  SWIZZLE_ASSIGN_OR_RETURN(const Array y, BackInOrder(call, rows, mapped));
  return call.As(y, call.In(0).dtype);
}

}  // namespace swizzle::interpreter
