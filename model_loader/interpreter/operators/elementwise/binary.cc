// Operators on elements of two or more inputs that broadcast: arithmetic, comparison, logic, selection.
#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "kernels/operator/element_functions.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

// Below opset 7 the second input had to be told to broadcast, and along which axis: as ones put after its dimensions.
// REQUIRES: such an opset.
StatusOr<Array> LegacyBroadcast(Call& call, const Array& a, const Array& b) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t broadcast, call.Int("broadcast", 0));
  if (broadcast == 0 && a.shape != b.shape) {
    return InvalidArgument("shapes ", ShapeText(a.shape), " and ", ShapeText(b.shape), " differ");
  }
  if (!call.HasAttribute("axis") || b.rank() == 0) return b;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, call.AxisAttribute(0, a.rank()));
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, ShapeAtAxis(b.shape, axis, a.rank()));
  return b.WithShape(std::move(shape));
}

// z[i] = function(x[i], y[i]). The common steps get loops of their own, which the compiler vectorises.
template <typename T, typename Out, typename Function>
void ZipRun(const T* x, int64_t x_step, const T* y, int64_t y_step, int64_t count, const Function& function, Out* z) {
  if (x_step == 1 && y_step == 1) {
    for (int64_t i = 0; i < count; ++i) z[i] = static_cast<Out>(function(x[i], y[i]));
  } else if (x_step == 1 && y_step == 0) {
    for (int64_t i = 0; i < count; ++i) z[i] = static_cast<Out>(function(x[i], *y));
  } else {
    for (int64_t i = 0; i < count; ++i) z[i] = static_cast<Out>(function(x[i * x_step], y[i * y_step]));
  }
}

// How far an array moves for each element of `all`, where that is the same all along: it is as long, or a number.
std::optional<int64_t> OnlyStep(const Array& array, int64_t all) {
  const int64_t elements = array.elements();
  if (elements == all) return 1;
  return elements == 1 ? std::optional<int64_t>(0) : std::nullopt;
}

// out[i] = function(a[i], b[i]).
template <typename T, typename Out, typename Function>
void Zip(const Array& a, const Array& b, const Function& function, Array& out) {
  const T* const x = a.As<T>().data();
  const T* const y = b.As<T>().data();
  Out* const z = out.Mutable<Out>().data();
  const int64_t all = out.elements();
  const std::optional<int64_t> x_step = OnlyStep(a, all), y_step = OnlyStep(b, all);
  if (x_step && y_step) return ZipRun(x, *x_step, y, *y_step, all, function, z);
  const StridedLoop<2> loop(out.shape, {BroadcastExtents(a.shape, out.shape), BroadcastExtents(b.shape, out.shape)});
  loop.ForEachRun([&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
    ZipRun(x + offsets[0], loop.Step(0), y + offsets[1], loop.Step(1), count, function, z + position);
  });
}

StatusOr<Shape> SharedShape(const Array& a, const Array& b) {
  if (a.shape == b.shape || b.rank() == 0) return a.shape;
  const Shape shapes[] = {a.shape, b.shape};
  return BroadcastShape(shapes);
}

// The results are of type Out, or, where that is void, of the inputs'.
template <typename Out, typename Function>
StatusOr<Array> CombineTwo(Call& call, const Array& first, const Array& second, const Function& function) {
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(first, second));
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, SharedShape(first, second));
  const DType type = ComputeType(first.dtype);
  const bool widens = type != first.dtype;
  Array a, b;
  if (widens) {
    SWIZZLE_ASSIGN_OR_RETURN(a, call.As(first, type));
    SWIZZLE_ASSIGN_OR_RETURN(b, call.As(second, type));
  }
  constexpr bool kTests = !std::is_void_v<Out>;
  SWIZZLE_ASSIGN_OR_RETURN(Array out, call.New(kTests ? DType::kBool : type, std::move(shape)));
  if (!call.wants_elements()) return call.As(std::move(out), kTests ? DType::kBool : first.dtype);
  VisitComputeType(type, [&]<typename T>(T) {
    Zip<T, std::conditional_t<kTests, Out, T>>(widens ? a : first, widens ? b : second, function, out);
  });
  return call.As(std::move(out), kTests ? DType::kBool : first.dtype);
}

template <typename Out = void, typename Function>
StatusOr<Array> Combine(Call& call, const Function& function) {
  if (call.opset() >= 7) return CombineTwo<Out>(call, call.In(0), call.In(1), function);
  SWIZZLE_ASSIGN_OR_RETURN(const Array b, LegacyBroadcast(call, call.In(0), call.In(1)));
  return CombineTwo<Out>(call, call.In(0), b, function);
}

// The same over any number of inputs, from left to right.
template <typename Function>
StatusOr<Array> CombineAll(Call& call, const Function& function) {
  Array total = call.In(0);
  for (size_t i = 1; i < call.input_count(); ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    SWIZZLE_ASSIGN_OR_RETURN(total, CombineTwo<void>(call, total, call.In(i), function));
  }
  return total;
}

// A BOOL for each pair.
template <typename Function>
StatusOr<Array> Compare(Call& call, const Function& function) {
  return Combine<uint8_t>(call, function);
}

template <typename Function>
StatusOr<Array> Logic(Call& call, const Function& function) {
  if (call.In(0).dtype != DType::kBool) return InvalidArgument("input 0 is not BOOL");
  return Combine(call, [&]<typename T>(T x, T y) -> T { return static_cast<T>(function(x, y)); });
}

// Whole numbers have these alone.
template <typename Function>
StatusOr<Array> Bits(Call& call, const Function& function) {
  const DType dtype = call.In(0).dtype;
  if (IsFloating(dtype) || dtype == DType::kBool) return InvalidArgument("input 0 is ", DTypeName(dtype));
  return Combine(call, [&]<typename T>(T x, T y) -> T {
    if constexpr (std::is_floating_point_v<T>)
      return x;
    else
      return function(x, y);
  });
}

// The remainder with the divisor's sign.
template <typename T>
T FlooredRemainder(T x, T y) {
  if (y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1))) return 0;
  const T remainder = static_cast<T>(x % y);
  if constexpr (std::is_signed_v<T>) {
    if (remainder != 0 && (remainder < 0) != (y < 0)) return static_cast<T>(remainder + y);
  }
  return remainder;
}

template <typename T>
T Power(T x, double exponent) {
  if constexpr (std::is_floating_point_v<T>) {
    return elementwise::kPow(x, static_cast<T>(exponent));
  } else {
    if (exponent < 0 || exponent != std::floor(exponent)) {
      const double value = std::pow(static_cast<double>(x), exponent);
      return std::fabs(value) < 9.2e18 ? static_cast<T>(value) : T(0);
    }
    T result = 1;
    T base = x;
    for (uint64_t bits = exponent < 64e9 ? static_cast<uint64_t>(exponent) : 0; bits > 0; bits >>= 1) {
      if (bits & 1) result = elementwise::kMul(result, base);
      base = elementwise::kMul(base, base);
    }
    return result;
  }
}

}  // namespace

StatusOr<Array> Add(Call& call) { return Combine(call, elementwise::kAdd); }
StatusOr<Array> Sub(Call& call) { return Combine(call, elementwise::kSub); }
StatusOr<Array> Mul(Call& call) { return Combine(call, elementwise::kMul); }
StatusOr<Array> Div(Call& call) { return Combine(call, elementwise::kDiv); }

StatusOr<Array> Mod(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t fmod, call.Int("fmod", 0));
  if (fmod == 0 && IsFloating(call.In(0).dtype)) return InvalidArgument("fmod must be 1 for floating types");
  return Combine(call, [fmod]<typename T>(T x, T y) -> T {
    if constexpr (std::is_floating_point_v<T>)
      return std::fmod(x, y);
    else if (fmod == 0)
      return FlooredRemainder(x, y);
    else
      return y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1)) ? T(0) : static_cast<T>(x % y);
  });
}

StatusOr<Array> BitShift(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string direction, call.String("direction", ""));
  if (direction != "LEFT" && direction != "RIGHT") return InvalidArgument("direction is neither LEFT nor RIGHT");
  return Combine(call, [left = direction == "LEFT"]<typename T>(T x, T y) -> T {
    const auto bits = static_cast<uint64_t>(x);
    const auto shift = static_cast<uint64_t>(y);
    if (shift >= 64) return T(0);
    return static_cast<T>(left ? bits << shift : bits >> shift);
  });
}

StatusOr<Array> BitwiseAnd(Call& call) {
  return Bits(call, []<typename T>(T x, T y) -> T { return x & y; });
}
StatusOr<Array> BitwiseOr(Call& call) {
  return Bits(call, []<typename T>(T x, T y) -> T { return x | y; });
}
StatusOr<Array> BitwiseXor(Call& call) {
  return Bits(call, []<typename T>(T x, T y) -> T { return x ^ y; });
}

StatusOr<Array> Pow(Call& call) {
  const Array& base = call.In(0);
  Array exponents = call.In(1);
  if (call.opset() < 7) {
    SWIZZLE_ASSIGN_OR_RETURN(exponents, LegacyBroadcast(call, base, exponents));
  }
  SWIZZLE_ASSIGN_OR_RETURN(exponents, call.As(std::move(exponents), DType::kFloat64));
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, SharedShape(base, exponents));
  const DType type = ComputeType(base.dtype);
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(base, type));
  SWIZZLE_ASSIGN_OR_RETURN(Array out, call.New(type, shape));
  if (!call.wants_elements()) return call.As(std::move(out), base.dtype);
  const StridedLoop<2> loop(shape, {BroadcastExtents(x.shape, shape), BroadcastExtents(exponents.shape, shape)});
  VisitComputeType(type, [&]<typename T>(T) {
    loop.ForEachRun([&](int64_t position, const std::array<int64_t, 2>& offsets, int64_t count) {
      const T* from = x.As<T>().data() + offsets[0];
      const double* exponent = exponents.As<double>().data() + offsets[1];
      T* to = out.Mutable<T>().data() + position;
      for (int64_t i = 0; i < count; ++i) to[i] = Power<T>(from[i * loop.Step(0)], exponent[i * loop.Step(1)]);
    });
  });
  return call.As(std::move(out), base.dtype);
}

StatusOr<Array> PRelu(Call& call) {
  const Array& x = call.In(0);
  Array slope = call.In(1);
  // Up to opset 6 one slope per channel came as a list.
  if (slope.rank() == 1 && x.rank() > 2 && call.opset() < 9 && slope.shape[0] == x.shape[1]) {
    Shape shape(static_cast<size_t>(x.rank() - 1), 1);
    shape[0] = slope.shape[0];
    slope = slope.WithShape(std::move(shape));
  }
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, SharedShape(x, slope));
  if (shape != x.shape) return InvalidArgument("the slope does not broadcast to the input");
  return CombineTwo<void>(call, x, slope, elementwise::kPRelu);
}

StatusOr<Array> Equal(Call& call) { return Compare(call, elementwise::kEqual); }
StatusOr<Array> Greater(Call& call) { return Compare(call, elementwise::kGreater); }
StatusOr<Array> GreaterOrEqual(Call& call) { return Compare(call, elementwise::kGreaterOrEqual); }
StatusOr<Array> Less(Call& call) { return Compare(call, elementwise::kLess); }
StatusOr<Array> LessOrEqual(Call& call) { return Compare(call, elementwise::kLessOrEqual); }

StatusOr<Array> And(Call& call) { return Logic(call, elementwise::kAnd); }
StatusOr<Array> Or(Call& call) { return Logic(call, elementwise::kOr); }
StatusOr<Array> Xor(Call& call) { return Logic(call, elementwise::kXor); }

StatusOr<Array> Max(Call& call) { return CombineAll(call, elementwise::kMax); }
StatusOr<Array> Min(Call& call) { return CombineAll(call, elementwise::kMin); }
StatusOr<Array> Sum(Call& call) { return CombineAll(call, elementwise::kAdd); }

StatusOr<Array> Mean(Call& call) {
  if (!IsFloating(call.In(0).dtype)) return InvalidArgument("input 0 must be floating");
  SWIZZLE_ASSIGN_OR_RETURN(const Array sum, Sum(call));
  SWIZZLE_ASSIGN_OR_RETURN(Array count, call.New(DType::kFloat32, {}));
  count.Mutable<float>()[0] = static_cast<float>(call.input_count());
  SWIZZLE_ASSIGN_OR_RETURN(const Array divisor, call.As(count, sum.dtype));
  return CombineTwo<void>(call, sum, divisor, elementwise::kDiv);
}

StatusOr<Array> Where(Call& call) {
  const Array& condition = call.In(0);
  const Array& x = call.In(1);
  const Array& y = call.In(2);
  if (condition.dtype != DType::kBool) return InvalidArgument("the condition must be BOOL");
  SWIZZLE_RETURN_IF_ERROR(CheckSameType(x, y));
  const Shape shapes[] = {condition.shape, x.shape, y.shape};
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShape(shapes));
  SWIZZLE_ASSIGN_OR_RETURN(Array out, call.New(x.dtype, shape));
  const StridedLoop<3> loop(shape, {BroadcastExtents(condition.shape, shape), BroadcastExtents(x.shape, shape),
                                    BroadcastExtents(y.shape, shape)});
  const auto select = [&]<typename T>(T) {
    loop.ForEachRun([&](int64_t position, const std::array<int64_t, 3>& offsets, int64_t count) {
      const uint8_t* chosen = condition.As<uint8_t>().data() + offsets[0];
      const T* yes = x.As<T>().data() + offsets[1];
      const T* no = y.As<T>().data() + offsets[2];
      T* to = out.Mutable<T>().data() + position;
      for (int64_t i = 0; i < count; ++i) {
        to[i] = chosen[i * loop.Step(0)] != 0 ? yes[i * loop.Step(1)] : no[i * loop.Step(2)];
      }
    });
  };
  VisitSize(ElementBytes(x.dtype), select);
  return out;
}

}  // namespace swizzle::interpreter
