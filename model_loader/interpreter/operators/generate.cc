// Operators that make elements: constants, ranges, masks.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

StatusOr<Array> FromTensor(Call& call, const Tensor& tensor) {
  SWIZZLE_ASSIGN_OR_RETURN(Array array, call.New(tensor.dtype, tensor.shape));
  if (!tensor.bytes.empty()) std::memcpy(array.data.get(), tensor.bytes.data(), tensor.bytes.size());
  return array;
}

// The element `value` everywhere.
Array Filled(const std::byte* value, Array array) {
  const size_t bytes = ElementBytes(array.dtype);
  for (int64_t i = 0; i < array.elements(); ++i) {
    std::memcpy(array.data.get() + static_cast<size_t>(i) * bytes, value, bytes);
  }
  return array;
}

}  // namespace

StatusOr<Array> Constant(Call& call) {
  const auto& attributes = call.node().attributes;
  if (attributes.size() != 1) return InvalidArgument("it has ", attributes.size(), " values instead of 1");
  const Attribute& value = attributes.begin()->second;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return FromTensor(call, *tensor);
  if (const auto* real = std::get_if<float>(&value)) return FromTensor(call, Tensor::Floats({}, std::span(real, 1)));
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return FromTensor(call, Tensor::Int64s({}, std::span(whole, 1)));
  }
  if (const auto* reals = std::get_if<std::vector<float>>(&value)) {
    return FromTensor(call, Tensor::Floats({static_cast<int64_t>(reals->size())}, *reals));
  }
  if (const auto* wholes = std::get_if<std::vector<int64_t>>(&value)) {
    return FromTensor(call, Tensor::Int64s({static_cast<int64_t>(wholes->size())}, *wholes));
  }
  return InvalidArgument("its value is of the wrong type");
}

StatusOr<Array> ConstantOfShape(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, call.List(0));
  const auto found = call.node().attributes.find("value");
  if (found == call.node().attributes.end()) {
    SWIZZLE_ASSIGN_OR_RETURN(Array zeros, call.New(DType::kFloat32, shape));
    const auto values = zeros.Mutable<float>();
    std::fill(values.begin(), values.end(), 0.0f);
    return zeros;
  }
  const auto* value = std::get_if<Tensor>(&found->second);
  if (value == nullptr || value->elements() != 1) return InvalidArgument("value must be a tensor of one element");
  SWIZZLE_ASSIGN_OR_RETURN(Array array, call.New(value->dtype, shape));
  return Filled(value->bytes.data(), std::move(array));
}

StatusOr<Array> Range(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(call.In(0), call.In(1)));
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(call.In(0), call.In(2)));
  SWIZZLE_ASSIGN_OR_RETURN(const double start, call.RealScalar(0, 0.0));
  SWIZZLE_ASSIGN_OR_RETURN(const double limit, call.RealScalar(1, 0.0));
  SWIZZLE_ASSIGN_OR_RETURN(const double delta, call.RealScalar(2, 1.0));
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count < 9e15)) return InvalidArgument("a range from ", start, " to ", limit, " by ", delta, " has no end");
  const DType type = ComputeType(call.In(0).dtype);
  SWIZZLE_ASSIGN_OR_RETURN(const Array first, call.As(call.In(0), type));
  SWIZZLE_ASSIGN_OR_RETURN(const Array step, call.As(call.In(2), type));
  SWIZZLE_ASSIGN_OR_RETURN(Array range, call.New(type, {static_cast<int64_t>(count)}));
  VisitComputeType(type, [&]<typename T>(T) {
    const std::span<T> to = range.Mutable<T>();
    using Sum = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;  // integers wrap
    const auto base = static_cast<Sum>(first.As<T>()[0]), by = static_cast<Sum>(step.As<T>()[0]);
    for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(base + static_cast<Sum>(i) * by);
  });
  return call.As(range, call.In(0).dtype);
}

StatusOr<Array> EyeLike(Call& call) {
  const Array& like = call.In(0);
  if (like.rank() != 2) return InvalidArgument("input 0 must be a matrix");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t k, call.Int("k", 0));
  SWIZZLE_ASSIGN_OR_RETURN(Array eye, call.New(DType::kBool, like.shape));
  const auto flags = eye.Mutable<uint8_t>();
  const int64_t columns = like.shape[1];
  std::fill(flags.begin(), flags.end(), uint8_t{0});
  for (int64_t row = 0; row < like.shape[0]; ++row) {
    if (k > -row - 1 && k < columns - row) flags[static_cast<size_t>(row * columns + row + k)] = 1;
  }
  if (!call.HasAttribute("dtype")) return call.As(eye, like.dtype);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t dtype, call.Int("dtype", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const DType type, ElementTypeOf(dtype));
  return call.As(eye, type);
}

StatusOr<Array> Trilu(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 2));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t upper, call.Int("upper", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t given, call.IntScalar(1, 0));
  const int64_t columns = x.shape.back(), rows = x.shape[x.shape.size() - 2];
  const int64_t k = std::clamp(given, -rows - 1, columns + 1);
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(x.dtype, x.shape));
  if (y.elements() == 0) return y;
  const int64_t all_rows = y.elements() / columns;
  VisitSize(ElementBytes(x.dtype), [&]<typename T>(T) {
    for (int64_t row = 0; row < all_rows; ++row) {
      const T* from = x.As<T>().data() + row * columns;
      T* to = y.Mutable<T>().data() + row * columns;
      const int64_t diagonal = row % rows + k;
      for (int64_t j = 0; j < columns; ++j) to[j] = (upper != 0 ? j >= diagonal : j <= diagonal) ? from[j] : T(0);
    }
  });
  return y;
}

StatusOr<Array> ReverseSequence(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_RETURN_IF_ERROR(CheckRank(x, 2));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t time, call.Int("time_axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t batch, call.Int("batch_axis", 1));
  if (time + batch != 1 || time * batch != 0) return InvalidArgument("batch_axis and time_axis must be 0 and 1");
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, call.List(1));
  const int64_t steps = x.shape[static_cast<size_t>(time)], sequences = x.shape[static_cast<size_t>(batch)];
  if (static_cast<int64_t>(lengths.size()) != sequences) return InvalidArgument("there must be one length a sequence");
  for (const int64_t length : lengths) {
    if (length < 0 || length > steps) return InvalidArgument("a sequence has length ", length, " of ", steps);
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(x.dtype, x.shape));
  const int64_t bytes = ProductOf(x.shape, 2, x.rank()) * static_cast<int64_t>(ElementBytes(x.dtype));
  const auto offset = [&](int64_t sequence, int64_t step) {
    return (time == 0 ? step * sequences + sequence : sequence * steps + step) * bytes;
  };
  for (int64_t sequence = 0; bytes > 0 && sequence < sequences; ++sequence) {
    const int64_t length = lengths[static_cast<size_t>(sequence)];
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t from = step < length ? length - 1 - step : step;
      std::memcpy(y.data.get() + offset(sequence, step), x.data.get() + offset(sequence, from),
                  static_cast<size_t>(bytes));
    }
  }
  return y;
}

}  // namespace swizzle::interpreter
