// What ONNX's element-wise operators make of one element of each input: for the interpreter, which runs them, and for
// the walk over sequences, which recognises what exporters wrote of them.
//
// They take numbers of any type that is computed in: float, double, int64_t, uint64_t. Whole numbers wrap. Division by
// zero gives 0 there: ONNX leaves that open, and C++ does not define it. Pure functions, as objects without state, so
// that tables can name them.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENT_FUNCTIONS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENT_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

namespace swizzle::elementwise {

// Of one number.

inline constexpr auto kAbs = []<typename T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_unsigned_v<T>)
    return x;
  else
    return x < 0 ? static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
};
inline constexpr auto kNeg = []<typename T>(T x) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return -x;
  else
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
};
inline constexpr auto kRelu = []<typename T>(T x) -> T { return x < T(0) ? T(0) : x; };  // keeps what is no number

inline constexpr auto kIsNaN = []<typename T>(T x) -> bool {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(x);
  else
    return false;
};
inline constexpr auto kNot = [](auto x) -> bool { return x == 0; };

// Of one floating number.

inline constexpr auto kExp = []<typename T>(T x) -> T { return std::exp(x); };
inline constexpr auto kSqrt = []<typename T>(T x) -> T { return std::sqrt(x); };
inline constexpr auto kReciprocal = []<typename T>(T x) -> T { return T(1) / x; };
inline constexpr auto kErf = []<typename T>(T x) -> T { return std::erf(x); };
inline constexpr auto kTanh = []<typename T>(T x) -> T { return std::tanh(x); };
inline constexpr auto kSigmoid = []<typename T>(T x) -> T { return T(1) / (T(1) + std::exp(-x)); };
inline constexpr auto kSilu = []<typename T>(T x) -> T { return x * kSigmoid(x); };
inline constexpr auto kGelu = []<typename T>(T x) -> T {
  return T(0.5) * x * (T(1) + std::erf(x / std::numbers::sqrt2_v<T>));
};
inline constexpr auto kGeluTanh = []<typename T>(T x) -> T {
  const T root = std::sqrt(T(2) / std::numbers::pi_v<T>);
  return T(0.5) * x * (T(1) + std::tanh(root * (x + T(0.044715) * x * x * x)));
};

// Of two numbers.

inline constexpr auto kAdd = []<typename T>(T x, T y) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return x + y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
};
inline constexpr auto kSub = []<typename T>(T x, T y) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return x - y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
};
inline constexpr auto kMul = []<typename T>(T x, T y) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return x * y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
};
inline constexpr auto kDiv = []<typename T>(T x, T y) -> T {
  if constexpr (std::is_floating_point_v<T>)
    return x / y;
  else if (y == 0)
    return 0;
  else if constexpr (std::is_signed_v<T>)
    return y == -1 ? kNeg(x) : static_cast<T>(x / y);
  else
    return x / y;
};
// Where one is not a number, so is the result.
inline constexpr auto kMax = []<typename T>(T x, T y) -> T { return x > y || kIsNaN(x) ? x : y; };
inline constexpr auto kMin = []<typename T>(T x, T y) -> T { return x < y || kIsNaN(x) ? x : y; };

// Whether something is true of two numbers.

inline constexpr auto kEqual = [](auto x, auto y) { return x == y; };
inline constexpr auto kGreater = [](auto x, auto y) { return x > y; };
inline constexpr auto kGreaterOrEqual = [](auto x, auto y) { return x >= y; };
inline constexpr auto kLess = [](auto x, auto y) { return x < y; };
inline constexpr auto kLessOrEqual = [](auto x, auto y) { return x <= y; };
// Everything but 0 is true.
inline constexpr auto kAnd = [](auto x, auto y) { return x != 0 && y != 0; };
inline constexpr auto kOr = [](auto x, auto y) { return x != 0 || y != 0; };
inline constexpr auto kXor = [](auto x, auto y) { return (x != 0) != (y != 0); };

// Of a number and its bounds.

// The upper bound goes before the lower one.
inline constexpr auto kClip = []<typename T>(T x, double low, double high) -> T {
  const double value = static_cast<double>(x);
  if (value > high) return static_cast<T>(high);
  return value < low ? static_cast<T>(low < high ? low : high) : x;
};

}  // namespace swizzle::elementwise

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENT_FUNCTIONS_H_
