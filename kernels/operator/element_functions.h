// What ONNX's element-wise operators make of one element of each input: for the interpreter, which runs them, for the
// walk over sequences, which recognises what exporters wrote of them, and for devices (PointOp).
//
// They take numbers of any type that is computed in: float, double, int64_t, uint64_t; what makes sense of real numbers
// alone takes no others. Whole numbers wrap. Division by zero gives 0 there: ONNX leaves that open, and C++ does not
// define it. Pure functions, as objects without state, so that tables can name them. GPUs' kernels, which see no
// objects of the host's, make one of the type: Abs()(x).
#ifndef SWIZZLE_KERNELS_OPERATOR_ELEMENT_FUNCTIONS_H_
#define SWIZZLE_KERNELS_OPERATOR_ELEMENT_FUNCTIONS_H_

#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "kernels/base/on_devices.h"

namespace swizzle::elementwise {

template <typename T>
inline constexpr bool kIsReal = std::is_floating_point_v<T>;

// What is computed otherwise of whole numbers than of real ones.

template <typename T>
SWIZZLE_ON_DEVICES_TOO T SumOf(T x, T y) {
  if constexpr (kIsReal<T>)
    return x + y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
template <typename T>
SWIZZLE_ON_DEVICES_TOO T DifferenceOf(T x, T y) {
  if constexpr (kIsReal<T>)
    return x - y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
}
template <typename T>
SWIZZLE_ON_DEVICES_TOO T ProductOf(T x, T y) {
  if constexpr (kIsReal<T>)
    return x * y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
template <typename T>
SWIZZLE_ON_DEVICES_TOO T NegativeOf(T x) {
  if constexpr (kIsReal<T>)
    return -x;
  else
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
}
template <typename T>
SWIZZLE_ON_DEVICES_TOO T QuotientOf(T x, T y) {
  if constexpr (kIsReal<T>)
    return x / y;
  else if (y == 0)
    return 0;
  else
    return std::is_signed_v<T> && y == static_cast<T>(-1) ? NegativeOf(x) : static_cast<T>(x / y);
}
template <typename T>
SWIZZLE_ON_DEVICES_TOO T MagnitudeOf(T x) {
  if constexpr (kIsReal<T>)
    return std::fabs(x);
  else
    return x < T(0) ? NegativeOf(x) : x;
}
template <typename T>
SWIZZLE_ON_DEVICES_TOO bool IsNotANumber(T x) {
  if constexpr (kIsReal<T>)
    return std::isnan(x);
  else
    return false;
}

// Whole numbers have bounds that are doubles. The upper one goes before the lower one.
template <typename T>
using Bound = std::conditional_t<kIsReal<T>, T, double>;
template <typename T>
SWIZZLE_ON_DEVICES_TOO T WithinBounds(T x, Bound<T> low, Bound<T> high) {
  const auto value = static_cast<Bound<T>>(x);
  if (value > high) return static_cast<T>(high);
  return value < low ? static_cast<T>(low < high ? low : high) : x;
}

// The type Name, whose objects make `result` of their parameters, numbers of a type T that is a Number, and kName.
#define SWIZZLE_ELEMENT_FUNCTION(Name, Number, parameters, result) \
  struct Name {                                                    \
    template <Number T>                                            \
    SWIZZLE_ON_DEVICES_TOO auto operator() parameters const {      \
      return result;                                               \
    }                                                              \
  };                                                               \
  inline constexpr Name k##Name

// These take one number.

SWIZZLE_ELEMENT_FUNCTION(Copy, typename, (T x), x);
SWIZZLE_ELEMENT_FUNCTION(Abs, typename, (T x), MagnitudeOf(x));
SWIZZLE_ELEMENT_FUNCTION(Neg, typename, (T x), NegativeOf(x));
SWIZZLE_ELEMENT_FUNCTION(Sign, typename, (T x), static_cast<T>((x > T(0)) - (x < T(0))));
SWIZZLE_ELEMENT_FUNCTION(Relu, typename, (T x), x < T(0) ? T(0) : x);  // keeps what is no number
SWIZZLE_ELEMENT_FUNCTION(IsNaN, typename, (T x), IsNotANumber(x));
SWIZZLE_ELEMENT_FUNCTION(Not, typename, (T x), x == 0);
SWIZZLE_ELEMENT_FUNCTION(Clip, typename, (T x, Bound<T> low, Bound<T> high), WithinBounds(x, low, high));

// These take one real number.

SWIZZLE_ELEMENT_FUNCTION(Floor, std::floating_point, (T x), std::floor(x));
SWIZZLE_ELEMENT_FUNCTION(Ceil, std::floating_point, (T x), std::ceil(x));
SWIZZLE_ELEMENT_FUNCTION(Exp, std::floating_point, (T x), std::exp(x));
SWIZZLE_ELEMENT_FUNCTION(Log, std::floating_point, (T x), std::log(x));
SWIZZLE_ELEMENT_FUNCTION(Sqrt, std::floating_point, (T x), std::sqrt(x));
SWIZZLE_ELEMENT_FUNCTION(Reciprocal, std::floating_point, (T x), T(1) / x);
SWIZZLE_ELEMENT_FUNCTION(Erf, std::floating_point, (T x), std::erf(x));
SWIZZLE_ELEMENT_FUNCTION(Sin, std::floating_point, (T x), std::sin(x));
SWIZZLE_ELEMENT_FUNCTION(Cos, std::floating_point, (T x), std::cos(x));
SWIZZLE_ELEMENT_FUNCTION(Tanh, std::floating_point, (T x), std::tanh(x));
SWIZZLE_ELEMENT_FUNCTION(Sigmoid, std::floating_point, (T x), T(1) / (T(1) + std::exp(-x)));
SWIZZLE_ELEMENT_FUNCTION(Silu, std::floating_point, (T x), Sigmoid()(x) * x);
SWIZZLE_ELEMENT_FUNCTION(Softplus, std::floating_point, (T x),
                         x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
SWIZZLE_ELEMENT_FUNCTION(Gelu, std::floating_point, (T x),
                         T(0.5) * x * (T(1) + std::erf(x * (std::numbers::sqrt2_v<T> / 2))));
SWIZZLE_ELEMENT_FUNCTION(GeluTanh, std::floating_point, (T x),  // the root of 2 / pi comes first
                         T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286536) * (x + T(0.044715) * x * x * x))));
SWIZZLE_ELEMENT_FUNCTION(LeakyRelu, std::floating_point, (T x, float alpha), x < 0 ? alpha * x : x);
SWIZZLE_ELEMENT_FUNCTION(Elu, std::floating_point, (T x, float alpha), x < 0 ? alpha * std::expm1(x) : x);
SWIZZLE_ELEMENT_FUNCTION(HardSigmoid, std::floating_point, (T x, float alpha, float beta),
                         WithinBounds<T>(beta + alpha * x, 0, 1));

// These take two numbers.

SWIZZLE_ELEMENT_FUNCTION(Add, typename, (T x, T y), SumOf(x, y));
SWIZZLE_ELEMENT_FUNCTION(Sub, typename, (T x, T y), DifferenceOf(x, y));
SWIZZLE_ELEMENT_FUNCTION(Mul, typename, (T x, T y), ProductOf(x, y));
SWIZZLE_ELEMENT_FUNCTION(Div, typename, (T x, T y), QuotientOf(x, y));
SWIZZLE_ELEMENT_FUNCTION(Pow, std::floating_point, (T x, T y), y == 2 ? x * x : std::pow(x, y));
SWIZZLE_ELEMENT_FUNCTION(PRelu, typename, (T x, T slope), x < T(0) ? ProductOf(slope, x) : x);
// Where one is not a number, so is the result.
SWIZZLE_ELEMENT_FUNCTION(Max, typename, (T x, T y), x > y || IsNotANumber(x) ? x : y);
SWIZZLE_ELEMENT_FUNCTION(Min, typename, (T x, T y), x < y || IsNotANumber(x) ? x : y);

// Whether something is true of two numbers.

SWIZZLE_ELEMENT_FUNCTION(Equal, typename, (T x, T y), x == y);
SWIZZLE_ELEMENT_FUNCTION(Greater, typename, (T x, T y), x > y);
SWIZZLE_ELEMENT_FUNCTION(GreaterOrEqual, typename, (T x, T y), x >= y);
SWIZZLE_ELEMENT_FUNCTION(Less, typename, (T x, T y), x < y);
SWIZZLE_ELEMENT_FUNCTION(LessOrEqual, typename, (T x, T y), x <= y);
// Everything but 0 is true.
SWIZZLE_ELEMENT_FUNCTION(And, typename, (T x, T y), x != 0 && y != 0);
SWIZZLE_ELEMENT_FUNCTION(Or, typename, (T x, T y), x != 0 || y != 0);
SWIZZLE_ELEMENT_FUNCTION(Xor, typename, (T x, T y), (x != 0) != (y != 0));

#undef SWIZZLE_ELEMENT_FUNCTION

}  // namespace swizzle::elementwise

#endif  // SWIZZLE_KERNELS_OPERATOR_ELEMENT_FUNCTIONS_H_
