// Operators that read or write elements at indices that are themselves inputs.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/little_window.h"
#include "model_loader/interpreter/values/settle.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// Calls take(j, index) with each of input i's indices into a dimension of `size`, counted from the front.
template <typename Take>
Status ForEachIndex(const Call& call, size_t i, int64_t size, const Take& take) {
  const Array& given = call.In(i);
  if (given.dtype != DType::kInt64 && given.dtype != DType::kInt32) {
    return InvalidArgument("the indices are ", DTypeName(given.dtype), "; they must be INT64 or INT32");
  }
  const auto count = static_cast<size_t>(given.elements());
  for (size_t j = 0; j < count; ++j) {
    const int64_t at = given.dtype == DType::kInt64 ? given.As<int64_t>()[j] : given.As<int32_t>()[j];
    if (at < -size || at >= size) return InvalidArgument("index ", at, " is not one of ", size);
    take(j, at < 0 ? at + size : at);
  }
  return {};
}

// Input i holds indices, which become INT64.
StatusOr<Array> Indices(Call& call, size_t i, int64_t size) {
  SWIZZLE_ASSIGN_OR_RETURN(Array indices, call.New(DType::kInt64, call.In(i).shape));
  const auto to = indices.Mutable<int64_t>();
  SWIZZLE_RETURN_IF_ERROR(ForEachIndex(call, i, size, [&](size_t j, int64_t index) { to[j] = index; }));
  return indices;
}

enum class Reduction { kNone, kAdd, kMul, kMax, kMin };

StatusOr<Reduction> ReductionOf(const Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string name, call.String("reduction", "none"));
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return InvalidArgument("reduction is '", name, "'; it may be none, add, mul, max or min");
}

template <typename T>
void Put(Reduction reduction, T value, T& target) {
  switch (reduction) {
    case Reduction::kNone:
      target = value;
      return;
    case Reduction::kAdd:
      target = static_cast<T>(target + value);
      return;
    case Reduction::kMul:
      target = static_cast<T>(target * value);
      return;
    case Reduction::kMax:
      target = std::max(target, value);
      return;
    case Reduction::kMin:
      target = std::min(target, value);
      return;
  }
}

// A copy of the array's own that can be written.
StatusOr<Array> Copied(Call& call, const Array& array) {
  SWIZZLE_ASSIGN_OR_RETURN(Array copy, call.New(array.dtype, array.shape));
  if (array.bytes() > 0) std::memcpy(copy.data.get(), array.data.get(), static_cast<size_t>(array.bytes()));
  return copy;
}

// What ScatterElements and ScatterND compute in: integers as unsigned ones, which wrap, unless they are compared.
DType ScatterType(DType dtype, Reduction reduction) {
  const DType type = ComputeType(dtype);
  const bool sums = reduction == Reduction::kAdd || reduction == Reduction::kMul;
  return sums && type == DType::kInt64 ? DType::kUint64 : type;
}

// Input 0 at an index along an axis, without that axis. Nothing is copied.
StatusOr<Array> LoneSlice(Call& call, int64_t axis, int64_t index) {
  const Array& data = call.In(0);
  std::vector<SliceRange> ranges;
  ranges.reserve(data.shape.size());
  for (const int64_t dimension : data.shape) ranges.push_back({0, dimension, 1});
  ranges[static_cast<size_t>(axis)] = {index, 1, 1};
  Shape shape = data.shape;
  shape.erase(shape.begin() + axis);
  if (IsLittle(call, data, shape)) return LittleWindow(call, data, ranges, std::move(shape));
  return MovedBy(call, data, shape, [&](Moved moved) {
    auto sliced = SlicedMoved(std::move(moved), ranges);
    return sliced ? ReshapedMoved(*std::move(sliced), shape) : std::nullopt;
  });
}

// For every element of `indices`: where it points to in an array of `shape`, along `axis`, the other coordinates
// being its own. Calls body(position, offset).
template <typename Body>
void ForEachElementIndex(const Array& indices, const Shape& shape, int64_t axis, const Body& body) {
  Shape strides = DenseStrides(shape);
  const int64_t along = strides[static_cast<size_t>(axis)];
  strides[static_cast<size_t>(axis)] = 0;
  const StridedLoop<1> loop(indices.shape, {strides});
  const int64_t* index = indices.As<int64_t>().data();
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 1>& offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      body(position + i, offsets[0] + i * loop.Step(0) + index[position + i] * along);
    }
  });
}

Status CheckElementIndices(const Array& data, const Array& indices, int64_t axis) {
  bool fits = indices.rank() == data.rank();
  for (int64_t d = 0; fits && d < data.rank(); ++d) {
    fits = d == axis || indices.shape[static_cast<size_t>(d)] <= data.shape[static_cast<size_t>(d)];
  }
  if (fits) return {};
  return InvalidArgument("indices of shape ", ShapeText(indices.shape), " do not fit data of shape ",
                         ShapeText(data.shape));
}

// Tuples of indices, the last dimension of input 1, into the first dimensions of input 0 past `batch_dims`.
struct TupleIndices {
  int64_t tuple = 0;             // indices in each
  int64_t slice = 0;             // elements that each points to
  std::vector<int64_t> offsets;  // of those slices
};

StatusOr<TupleIndices> ReadTuples(Call& call, int64_t batch_dims) {
  const Array& data = call.In(0);
  if (call.In(1).dtype != DType::kInt64) return InvalidArgument("the indices must be INT64");
  const Array& indices = call.In(1);
  SWIZZLE_RETURN_IF_ERROR(CheckRank(indices, 1));
  TupleIndices tuples;
  tuples.tuple = indices.shape.back();
  const bool fits = batch_dims >= 0 && batch_dims < indices.rank() && tuples.tuple >= 0 &&
                    batch_dims + tuples.tuple <= data.rank() &&
                    std::equal(indices.shape.begin(), indices.shape.begin() + batch_dims, data.shape.begin());
  if (!fits) {
    return InvalidArgument("indices of shape ", ShapeText(indices.shape), " do not fit data of shape ",
                           ShapeText(data.shape));
  }
  const Shape strides = DenseStrides(data.shape);
  const int64_t count = ProductOf(indices.shape, 0, indices.rank() - 1);
  const int64_t batches = ProductOf(indices.shape, 0, batch_dims);
  const int64_t batch_elements = ProductOf(data.shape, batch_dims, data.rank());
  tuples.slice = ProductOf(data.shape, batch_dims + tuples.tuple, data.rank());
  SWIZZLE_RETURN_IF_ERROR(call.New(DType::kInt64, {count}));  // within the limits
  const int64_t* index = indices.As<int64_t>().data();
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = i / (count / batches) * batch_elements;
    for (int64_t j = 0; j < tuples.tuple; ++j, ++index) {
      const auto d = static_cast<size_t>(batch_dims + j);
      if (*index < -data.shape[d] || *index >= data.shape[d]) {
        return InvalidArgument("index ", *index, " is not one of ", data.shape[d]);
      }
      offset += (*index < 0 ? *index + data.shape[d] : *index) * strides[d];
    }
    tuples.offsets.push_back(offset);
  }
  return tuples;
}

// Input 0 with input 2 put into it: put(from, to) is called with the elements of both.
template <typename Puts>
StatusOr<Array> Scattered(Call& call, Reduction reduction, const Puts& put) {
  const Array& data = call.In(0);
  const DType type = ScatterType(data.dtype, reduction);
  SWIZZLE_ASSIGN_OR_RETURN(const Array wide, call.As(data, type));
  SWIZZLE_ASSIGN_OR_RETURN(const Array updates, call.As(call.In(2), type));
  SWIZZLE_ASSIGN_OR_RETURN(Array result, Copied(call, wide));
  VisitComputeType(type, [&]<typename T>(T) { put(updates.As<T>().data(), result.Mutable<T>().data()); });
  return call.As(result, data.dtype);
}

}  // namespace

StatusOr<Array> Gather(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, call.In(0).rank()));
  const int64_t size = call.In(0).shape[static_cast<size_t>(axis)];
  if (call.In(1).rank() == 0 && call.In(0).elements() > 0) {
    int64_t lone = 0;
    SWIZZLE_RETURN_IF_ERROR(ForEachIndex(call, 1, size, [&](size_t, int64_t index) { lone = index; }));
    return LoneSlice(call, axis, lone);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Array indices, Indices(call, 1, size));
  SWIZZLE_ASSIGN_OR_RETURN(const Array data, Settled(call.In(0), call.memory(), call.stream(), nullptr));
  Shape shape(data.shape.begin(), data.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + axis + 1, data.shape.end());
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(data.dtype, std::move(shape)));
  const int64_t outer = ProductOf(data.shape, 0, axis);
  const int64_t bytes = ProductOf(data.shape, axis + 1, data.rank()) * static_cast<int64_t>(ElementBytes(data.dtype));
  if (result.elements() == 0) return result;
  std::byte* to = result.data.get();
  for (int64_t i = 0; i < outer; ++i) {
    for (const int64_t index : indices.As<int64_t>()) {
      std::memcpy(to, data.data.get() + (i * size + index) * bytes, static_cast<size_t>(bytes));
      to += bytes;
    }
  }
  return result;
}

StatusOr<Array> GatherElements(Call& call) {
  const Array& data = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, data.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const Array indices, Indices(call, 1, data.shape[static_cast<size_t>(axis)]));
  SWIZZLE_RETURN_IF_ERROR(CheckElementIndices(data, indices, axis));
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(data.dtype, indices.shape));
  VisitSize(ElementBytes(data.dtype), [&]<typename T>(T) {
    const T* from = data.As<T>().data();
    T* to = result.Mutable<T>().data();
    ForEachElementIndex(indices, data.shape, axis,
                        [&](int64_t position, int64_t offset) { to[position] = from[offset]; });
  });
  return result;
}

StatusOr<Array> ScatterElements(Call& call) {
  const Array& data = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(data, call.In(2)));
  SWIZZLE_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, data.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const Array indices, Indices(call, 1, data.shape[static_cast<size_t>(axis)]));
  SWIZZLE_RETURN_IF_ERROR(CheckElementIndices(data, indices, axis));
  if (call.In(2).shape != indices.shape) return InvalidArgument("the updates have another shape than the indices");
  return Scattered(call, reduction, [&](const auto* from, auto* to) {
    ForEachElementIndex(indices, data.shape, axis,
                        [&](int64_t position, int64_t offset) { Put(reduction, from[position], to[offset]); });
  });
}

StatusOr<Array> GatherND(Call& call) {
  const Array& data = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch_dims, call.Int("batch_dims", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const TupleIndices tuples, ReadTuples(call, batch_dims));
  Shape shape(call.In(1).shape.begin(), call.In(1).shape.end() - 1);
  shape.insert(shape.end(), data.shape.begin() + batch_dims + tuples.tuple, data.shape.end());
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(data.dtype, std::move(shape)));
  const auto element = static_cast<int64_t>(ElementBytes(data.dtype));
  const int64_t bytes = tuples.slice * element;
  std::byte* to = result.data.get();
  for (size_t i = 0; bytes > 0 && i < tuples.offsets.size(); ++i, to += bytes) {
    std::memcpy(to, data.data.get() + tuples.offsets[i] * element, static_cast<size_t>(bytes));
  }
  return result;
}

StatusOr<Array> ScatterND(Call& call) {
  const Array& data = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(data, call.In(2)));
  SWIZZLE_ASSIGN_OR_RETURN(const Reduction reduction, ReductionOf(call));
  SWIZZLE_ASSIGN_OR_RETURN(const TupleIndices tuples, ReadTuples(call, 0));
  Shape expected(call.In(1).shape.begin(), call.In(1).shape.end() - 1);
  expected.insert(expected.end(), data.shape.begin() + tuples.tuple, data.shape.end());
  if (call.In(2).shape != expected) {
    return InvalidArgument("the updates have shape ", ShapeText(call.In(2).shape), "; it must be ",
                           ShapeText(expected));
  }
  return Scattered(call, reduction, [&](const auto* from, auto* to) {
    for (const int64_t offset : tuples.offsets) {
      for (int64_t i = 0; i < tuples.slice; ++i) Put(reduction, *from++, to[offset + i]);
    }
  });
}

StatusOr<Array> TensorScatter(Call& call) {
  const Array &cache = call.In(0), &update = call.In(1);
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(cache, update));
  SWIZZLE_RETURN_IF_ERROR(CheckRank(cache, 2));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(-2, cache.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, call.String("mode", "linear"));
  Shape expected = cache.shape;
  if (axis == 0 || update.rank() != cache.rank()) return InvalidArgument("its axis is ", axis);
  const int64_t length = cache.shape[static_cast<size_t>(axis)], steps = update.shape[static_cast<size_t>(axis)];
  expected[static_cast<size_t>(axis)] = steps;
  if (update.shape != expected || (mode != "linear" && mode != "circular") || steps > length) {
    return InvalidArgument("an update of shape ", ShapeText(update.shape), " does not fit a cache of ",
                           ShapeText(cache.shape), " in mode '", mode, "'");
  }
  std::vector<int64_t> first(static_cast<size_t>(cache.shape[0]));
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(first, call.List(2));
  }
  if (static_cast<int64_t>(first.size()) != cache.shape[0])
    return InvalidArgument("there must be one place a sequence");
  for (const int64_t place : first) {
    if (place >= 0 && place + steps <= length) continue;
    if (mode == "linear" || place < 0 || length == 0) return InvalidArgument("a place to write at is ", place);
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, Copied(call, cache));
  const int64_t between = ProductOf(cache.shape, 1, axis);
  const int64_t bytes =
      ProductOf(cache.shape, axis + 1, cache.rank()) * static_cast<int64_t>(ElementBytes(cache.dtype));
  for (int64_t row = 0; bytes > 0 && row < cache.shape[0] * between; ++row) {
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t place = (first[static_cast<size_t>(row / between)] % length + step) % length;
      std::memcpy(y.data.get() + (row * length + place) * bytes, update.data.get() + (row * steps + step) * bytes,
                  static_cast<size_t>(bytes));
    }
  }
  return y;
}

StatusOr<Array> OneHot(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const double given_depth, call.RealScalar(1, 0.0));
  if (!(given_depth >= 1 && given_depth < 2147483648.0)) return InvalidArgument("depth must be at least 1");
  const auto depth = static_cast<int64_t>(given_depth);
  SWIZZLE_ASSIGN_OR_RETURN(const Array indices, call.As(call.In(0), DType::kInt64));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(-1, indices.rank() + 1));
  const Array& values = call.In(2);
  if (values.shape != Shape{2}) return InvalidArgument("the values must be two, off and on");
  Shape shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(values.dtype, shape));
  const int64_t inner = ProductOf(indices.shape, axis, indices.rank());
  VisitSize(ElementBytes(values.dtype), [&]<typename T>(T) {
    const std::span<const T> off_on = values.As<T>();
    const std::span<T> to = result.Mutable<T>();
    std::fill(to.begin(), to.end(), off_on[0]);
    const auto from = indices.As<int64_t>();
    for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) {
      int64_t index = from[static_cast<size_t>(i)];
      if (index < -depth || index >= depth) continue;
      if (index < 0) index += depth;
      to[static_cast<size_t>((i / inner * depth + index) * inner + i % inner)] = off_on[1];
    }
  });
  return result;
}

StatusOr<Array> NonZero(Call& call) {
  const Array& in = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const Array flags, call.As(in, DType::kBool));
  const auto set = flags.As<uint8_t>();
  const auto count =
      static_cast<int64_t>(std::count_if(set.begin(), set.end(), [](uint8_t flag) { return flag != 0; }));
  SWIZZLE_ASSIGN_OR_RETURN(Array result, call.New(DType::kInt64, {in.rank(), count}));
  const Shape strides = DenseStrides(in.shape);
  const auto to = result.Mutable<int64_t>();
  int64_t column = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(set.size()); ++i) {
    if (set[static_cast<size_t>(i)] == 0) continue;
    for (size_t d = 0; d < strides.size(); ++d) {
      to[d * static_cast<size_t>(count) + static_cast<size_t>(column)] = i / strides[d] % in.shape[d];
    }
    ++column;
  }
  return result;
}

StatusOr<Array> Compress(Call& call) {
  Array data = call.In(0);
  const Array& condition = call.In(1);
  if (condition.dtype != DType::kBool || condition.rank() != 1) {
    return InvalidArgument("the condition must be a list of BOOL");
  }
  if (!call.HasAttribute("axis")) data = data.WithShape({data.elements()});
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, data.rank()));
  const int64_t size = data.shape[static_cast<size_t>(axis)];
  if (condition.elements() > size) return InvalidArgument("the condition is longer than axis ", axis);
  SWIZZLE_ASSIGN_OR_RETURN(IndexMaps maps, NewIndexMaps(call, data.shape));
  for (const std::span<int64_t> map : maps.of) std::iota(map.begin(), map.end(), 0);
  std::span<int64_t>& kept = maps.of[static_cast<size_t>(axis)];
  const auto keep = condition.As<uint8_t>();
  size_t count = 0;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i] != 0) kept[count++] = static_cast<int64_t>(i);
  }
  kept = kept.first(count);
  return Picked(call, data, maps, nullptr);
}

}  // namespace swizzle::interpreter
