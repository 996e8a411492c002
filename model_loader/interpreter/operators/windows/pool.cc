// Pools.
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/operators/windows/window.h"

namespace swizzle::interpreter {
namespace {

// Calls body(plane) for each plane of [N, C, ...], shared among the stream's threads.
template <typename Body>
void ForEachPlane(Call& call, const Array& x, const Body& body) {
  constexpr int64_t kWorthAThread = 1 << 15;  // elements
  const int64_t planes = x.shape[0] * x.shape[1];
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  };
  const int64_t grain = x.elements() < kWorthAThread ? std::max<int64_t>(planes, 1) : 1;
  cpu::CpuStream::From(call.stream()).ParallelRanges(planes, run, grain);
}

Shape PooledShape(const Array& x, const Window& window) {
  Shape shape = {x.shape[0], x.shape[1]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  return shape;
}

// Where the element at `offset` of a plane stands if the first spatial dimension varies fastest.
int64_t ColumnMajor(int64_t offset, const Shape& spatial) {
  int64_t result = 0, stride = ProductOf(spatial, 0, static_cast<int64_t>(spatial.size()));
  for (size_t d = spatial.size(); d-- > 0;) {
    stride /= spatial[d];
    result += offset % spatial[d] * stride;
    offset /= spatial[d];
  }
  return result;
}

// How many elements each position's window covers, padding included, what lies past it not.
std::vector<float> PaddedCounts(const Window& window) {
  std::vector<float> counts = {1.0f};
  for (size_t d = 0; d < window.output.size(); ++d) {
    std::vector<float> next;
    for (const float count : counts) {
      for (int64_t at = 0; at < window.output[d]; ++at) {
        const int64_t end = window.input[d] + window.pads_begin[d] + window.pads_end[d];
        const int64_t room = (end - at * window.strides[d] + window.dilations[d] - 1) / window.dilations[d];
        next.push_back(count * static_cast<float>(std::min(window.kernel[d], room)));
      }
    }
    counts = std::move(next);
  }
  return counts;
}

// One value for each plane.
template <typename Function>
StatusOr<Array> PoolPlanes(Call& call, const Function& function) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 3));
  const int64_t plane = ProductOf(x.shape, 2, x.rank());
  if (plane == 0) return InvalidArgument("input 0 has shape ", ShapeText(x.shape), ", whose planes are empty");
  Shape shape(x.shape.size(), 1);
  std::copy_n(x.shape.begin(), 2, shape.begin());
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, shape));
  ForEachPlane(call, x, [&](int64_t i) {
    y.Mutable<float>()[static_cast<size_t>(i)] = function(x.As<float>().data() + i * plane, plane);
  });
  return call.As(y, call.In(0).dtype);
}

// The shape of what MaxPool made `pooled` of, as far as that can be told.
StatusOr<Shape> UnpooledShape(const Call& call, const Shape& pooled) {
  const size_t rank = pooled.size() - 2;
  SWIZZLE_ASSIGN_OR_RETURN(const Shape kernel, call.Ints("kernel_shape"));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape strides, call.Ints("strides", Shape(rank, 1)));
  SWIZZLE_ASSIGN_OR_RETURN(const Shape pads, call.Ints("pads", Shape(2 * rank, 0)));
  constexpr int64_t kMaxExtent = int64_t{1} << 30;
  const auto all_from = [](const Shape& list, int64_t low) {
    return std::ranges::all_of(list, [low](int64_t value) { return value >= low && value <= kMaxExtent; });
  };
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank || !all_from(kernel, 1) ||
      !all_from(strides, 1) || !all_from(pads, 0)) {
    return InvalidArgument("kernel_shape, strides and pads must have one, one and two numbers for each of ", rank,
                           " dimensions");
  }
  Shape shape = pooled;
  for (size_t d = 0; d < rank; ++d) {
    int64_t& size = shape[d + 2];
    size = (size - 1) * strides[d] + kernel[d] - pads[d] - pads[d + rank];
    if (size < 1) return InvalidArgument("pads are larger than what the kernel covers");
  }
  return shape;
}

}  // namespace

StatusOr<Results> MaxPool(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t column_major, call.Int("storage_order", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Window window, ReadWindow(call, x.shape, {}));
  SWIZZLE_ASSIGN_OR_RETURN(const Array taps, Taps(call, window));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, PooledShape(x, window)));
  SWIZZLE_ASSIGN_OR_RETURN(Array indices, call.New(DType::kInt64, call.WantsOutput(1) ? y.shape : Shape{0}));
  const int64_t plane = window.plane(), positions = window.positions(), count = window.taps();
  ForEachPlane(call, x, [&](int64_t i) {
    const float* from = x.As<float>().data() + i * plane;
    for (int64_t position = 0; position < positions; ++position) {
      const int32_t* source = taps.As<int32_t>().data() + position;
      float best = -std::numeric_limits<float>::infinity();
      int64_t place = 0;
      for (int64_t tap = 0; tap < count; ++tap, source += positions) {
        if (*source < 0 || from[*source] <= best) continue;
        best = from[*source];
        place = *source;
      }
      y.Mutable<float>()[static_cast<size_t>(i * positions + position)] = best;
      if (!call.WantsOutput(1)) continue;
      if (column_major != 0) place = ColumnMajor(place, window.input);
      indices.Mutable<int64_t>()[static_cast<size_t>(i * positions + position)] = i * plane + place;
    }
  });
  SWIZZLE_ASSIGN_OR_RETURN(y, call.As(y, call.In(0).dtype));
  return Results{y, indices};
}

// Indices count in the shape that follows from the attributes; in a larger one, given as input, elements stay where
// they are from the first corner.
StatusOr<Array> MaxUnpool(Call& call) {
  const Array& x = call.In(0);
  const Array& indices = call.In(1);
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 3));
  if (indices.dtype != DType::kInt64 || indices.shape != x.shape) {
    return InvalidArgument("indices are ", DTypeName(indices.dtype), ShapeText(indices.shape), "; they must be INT64",
                           ShapeText(x.shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Shape from, UnpooledShape(call, x.shape));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(from));
  Shape to = from;
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(to, call.List(2));
  }
  if (to.size() != from.size() || !std::ranges::equal(to, from, std::ranges::greater_equal())) {
    return InvalidArgument("output_shape is ", ShapeText(to), "; it must be at least ", ShapeText(from));
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(x.dtype, to));
  std::fill_n(y.data.get(), y.bytes(), std::byte{0});
  const Shape strides = DenseStrides(to);
  const size_t bytes = ElementBytes(x.dtype);
  for (int64_t i = 0; i < x.elements(); ++i) {
    int64_t rest = indices.As<int64_t>()[static_cast<size_t>(i)], offset = 0;
    if (rest < 0 || rest >= elements) return InvalidArgument("index ", rest, " is not one of ", elements);
    for (size_t d = from.size(); d-- > 0; rest /= from[d]) offset += rest % from[d] * strides[d];
    std::memcpy(y.data.get() + static_cast<size_t>(offset) * bytes, x.data.get() + static_cast<size_t>(i) * bytes,
                bytes);
  }
  return y;
}

StatusOr<Array> AveragePool(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.Floats(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t include, call.Int("count_include_pad", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const Window window, ReadWindow(call, x.shape, {}));
  SWIZZLE_ASSIGN_OR_RETURN(const Array taps, Taps(call, window));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kFloat32, PooledShape(x, window)));
  const int64_t plane = window.plane(), positions = window.positions(), count = window.taps();
  const std::vector<float> padded = include != 0 ? PaddedCounts(window) : std::vector<float>();
  ForEachPlane(call, x, [&](int64_t i) {
    const float* from = x.As<float>().data() + i * plane;
    for (int64_t position = 0; position < positions; ++position) {
      const int32_t* source = taps.As<int32_t>().data() + position;
      float sum = 0.0f, read = 0.0f;
      for (int64_t tap = 0; tap < count; ++tap, source += positions) {
        if (*source < 0) continue;
        sum += from[*source];
        read += 1.0f;
      }
      if (include != 0) read = padded[static_cast<size_t>(position)];
      y.Mutable<float>()[static_cast<size_t>(i * positions + position)] = read > 0.0f ? sum / read : 0.0f;
    }
  });
  return call.As(y, call.In(0).dtype);
}

StatusOr<Array> GlobalAveragePool(Call& call) {
  return PoolPlanes(call, [](const float* x, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; ++i) sum += x[i];
    return static_cast<float>(sum / static_cast<double>(count));
  });
}

StatusOr<Array> GlobalMaxPool(Call& call) {
  return PoolPlanes(call, [](const float* x, int64_t count) { return *std::max_element(x, x + count); });
}

}  // namespace swizzle::interpreter
