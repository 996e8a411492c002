// Operators on each element of one input: arithmetic, trigonometry, activations, tests.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/elementwise/function.h"
#include "kernels/operator/element_functions.h"
#include "model_loader/interpreter/operators/operators.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/functions.h"

namespace swizzle::interpreter {
namespace {

// result = function(x) for any type of number. Narrow ones are computed in place once they are widened.
template <typename Function>
StatusOr<Array> MapNumber(Call& call, const Function& function) {
  const Array& in = call.In(0);
  const DType type = ComputeType(in.dtype);
  Array wide;
  SWIZZLE_ASSIGN_OR_RETURN(const Array* const x, call.InAs(0, type, wide));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(type, in.shape));
  if (!call.wants_elements()) return call.As(std::move(y), in.dtype);
  VisitComputeType(type, [&]<typename T>(T) {
    const std::span<const T> from = x->As<T>();
    const std::span<T> to = y.Mutable<T>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(function(from[i]));
  });
  return call.As(std::move(y), in.dtype);
}

Status CheckReal(const Call& call) {
  if (IsFloating(call.In(0).dtype)) return {};
  return InvalidArgument("input 0 is ", DTypeName(call.In(0).dtype), "; it must be floating");
}

// result = function(x) in floating point; other types are refused.
template <typename Function>
StatusOr<Array> MapReal(Call& call, const Function& function) {
  SWIZZLE_RETURN_IF_ERROR(CheckReal(call));
  return MapNumber(call, [&]<typename T>(T x) -> T {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(function(x));
    else
      return x;
  });
}

// The same, FP32 by the vectors of plans' kernels: as they are there.
template <typename Function>
StatusOr<Array> MapReal(Call& call, const swizzle::Function& vectors, const Function& function) {
  const Array& in = call.In(0);
  if (in.dtype != DType::kFloat32) return MapReal(call, function);
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(in.dtype, in.shape));
  if (y.bytes() == 0 || !call.wants_elements()) return y;
  std::memcpy(y.data.get(), in.data.get(), static_cast<size_t>(y.bytes()));
  cpu::ApplyFunction(vectors, y.Mutable<float>().data(), y.elements());
  return y;
}

// A BOOL for each element.
template <typename Function>
StatusOr<Array> Test(Call& call, const Function& function) {
  const Array& in = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const Array x, call.As(in, DType::kFloat64));
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(DType::kBool, x.shape));
  const auto from = x.As<double>();
  const auto to = y.Mutable<uint8_t>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = function(from[i]) ? 1 : 0;
  return y;
}

}  // namespace

StatusOr<Array> Identity(Call& call) { return call.In(0); }

StatusOr<Results> Dropout(Call& call) {
  if (call.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(const double training, call.RealScalar(2, 0.0));
    if (training != 0.0) return Unimplemented("training mode is not supported; export the model for inference");
  }
  const Array& y = call.In(0);
  Results results = {y};
  if (call.WantsOutput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(Array mask, call.New(DType::kBool, y.shape));
    std::fill_n(mask.data.get(), mask.elements(), std::byte{1});
    results.push_back(std::move(mask));
  }
  return results;
}

StatusOr<Array> Abs(Call& call) { return MapNumber(call, elementwise::kAbs); }
StatusOr<Array> Neg(Call& call) { return MapNumber(call, elementwise::kNeg); }
StatusOr<Array> Sign(Call& call) { return MapNumber(call, elementwise::kSign); }
StatusOr<Array> Relu(Call& call) { return MapNumber(call, elementwise::kRelu); }

StatusOr<Array> Floor(Call& call) { return MapReal(call, elementwise::kFloor); }
StatusOr<Array> Ceil(Call& call) { return MapReal(call, elementwise::kCeil); }
StatusOr<Array> Round(Call& call) {
  return MapReal(call, [](auto x) { return std::nearbyint(x); });
}
StatusOr<Array> Exp(Call& call) { return MapReal(call, elementwise::kExp); }
StatusOr<Array> Log(Call& call) { return MapReal(call, elementwise::kLog); }
StatusOr<Array> Sqrt(Call& call) { return MapReal(call, elementwise::kSqrt); }
StatusOr<Array> Reciprocal(Call& call) { return MapReal(call, elementwise::kReciprocal); }
StatusOr<Array> Erf(Call& call) { return MapReal(call, elementwise::kErf); }
StatusOr<Array> Sin(Call& call) { return MapReal(call, elementwise::kSin); }
StatusOr<Array> Cos(Call& call) { return MapReal(call, elementwise::kCos); }
StatusOr<Array> Tan(Call& call) {
  return MapReal(call, [](auto x) { return std::tan(x); });
}
StatusOr<Array> Asin(Call& call) {
  return MapReal(call, [](auto x) { return std::asin(x); });
}
StatusOr<Array> Acos(Call& call) {
  return MapReal(call, [](auto x) { return std::acos(x); });
}
StatusOr<Array> Atan(Call& call) {
  return MapReal(call, [](auto x) { return std::atan(x); });
}
StatusOr<Array> Sinh(Call& call) {
  return MapReal(call, [](auto x) { return std::sinh(x); });
}
StatusOr<Array> Cosh(Call& call) {
  return MapReal(call, [](auto x) { return std::cosh(x); });
}
StatusOr<Array> Tanh(Call& call) { return MapReal(call, {FunctionKind::kTanh}, elementwise::kTanh); }
StatusOr<Array> Asinh(Call& call) {
  return MapReal(call, [](auto x) { return std::asinh(x); });
}
StatusOr<Array> Acosh(Call& call) {
  return MapReal(call, [](auto x) { return std::acosh(x); });
}
StatusOr<Array> Atanh(Call& call) {
  return MapReal(call, [](auto x) { return std::atanh(x); });
}
StatusOr<Array> Sigmoid(Call& call) { return MapReal(call, {FunctionKind::kSigmoid}, elementwise::kSigmoid); }
StatusOr<Array> Softplus(Call& call) { return MapReal(call, elementwise::kSoftplus); }
StatusOr<Array> Softsign(Call& call) {
  return MapReal(call, [](auto x) { return x / (1 + std::fabs(x)); });
}
StatusOr<Array> Mish(Call& call) {
  return MapReal(call, [](auto x) { return x * std::tanh(elementwise::kSoftplus(x)); });
}

StatusOr<Array> Gelu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const FunctionKind kind, GeluKindOf(call.node()));
  return kind == FunctionKind::kGelu ? MapReal(call, {kind}, elementwise::kGelu)
                                     : MapReal(call, {kind}, elementwise::kGeluTanh);
}

StatusOr<Array> LeakyRelu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 0.01f));
  return MapReal(call, [alpha](auto x) { return elementwise::kLeakyRelu(x, alpha); });
}

StatusOr<Array> ThresholdedRelu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.0f));
  return MapReal(call, [alpha]<typename T>(T x) { return x > alpha ? x : T(0); });
}

StatusOr<Array> Elu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.0f));
  return MapReal(call, [alpha](auto x) { return elementwise::kElu(x, alpha); });
}

StatusOr<Array> Celu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.0f));
  return MapReal(call, [alpha](auto x) { return x < 0 ? alpha * std::expm1(x / alpha) : x; });
}

StatusOr<Array> Selu(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 1.67326319217681884765625f));
  SWIZZLE_ASSIGN_OR_RETURN(const float gamma, call.Float("gamma", 1.05070102214813232421875f));
  return MapReal(call, [alpha, gamma](auto x) { return gamma * (x > 0 ? x : alpha * std::expm1(x)); });
}

StatusOr<Array> HardSigmoid(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float alpha, call.Float("alpha", 0.2f));
  SWIZZLE_ASSIGN_OR_RETURN(const float beta, call.Float("beta", 0.5f));
  return MapReal(call, [=](auto x) { return elementwise::kHardSigmoid(x, alpha, beta); });
}

StatusOr<Array> HardSwish(Call& call) {
  return MapReal(call, []<typename T>(T x) { return x * std::clamp(T(x / 6 + T(0.5)), T(0), T(1)); });
}

StatusOr<Array> Shrink(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const float bias, call.Float("bias", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(const float lambda, call.Float("lambd", 0.5f));
  return MapReal(call, [bias, lambda]<typename T>(T x) -> T {
    if (x < -lambda) return x + bias;
    return x > lambda ? x - bias : T(0);
  });
}

StatusOr<Array> IsNaN(Call& call) { return Test(call, elementwise::kIsNaN); }

StatusOr<Array> IsInf(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t negative, call.Int("detect_negative", 1));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t positive, call.Int("detect_positive", 1));
  return Test(call, [=](double x) { return std::isinf(x) && (x < 0 ? negative != 0 : positive != 0); });
}

StatusOr<Array> Not(Call& call) {
  if (call.In(0).dtype != DType::kBool) return InvalidArgument("input 0 must be BOOL");
  return Test(call, elementwise::kNot);
}

StatusOr<Array> BitwiseNot(Call& call) {
  const DType dtype = call.In(0).dtype;
  if (IsFloating(dtype) || dtype == DType::kBool) return InvalidArgument("input 0 is ", DTypeName(dtype));
  return MapNumber(call, []<typename T>(T x) -> T {
    if constexpr (std::is_floating_point_v<T>)
      return x;
    else
      return static_cast<T>(~x);
  });
}

StatusOr<Array> BitCast(Call& call) {
  const Array& x = call.In(0);
  SWIZZLE_ASSIGN_OR_RETURN(const DType type, CastType(call.node()));
  if (ElementBytes(type) != ElementBytes(x.dtype)) {
    return InvalidArgument(DTypeName(x.dtype), " has not as many bits as ", DTypeName(type));
  }
  SWIZZLE_ASSIGN_OR_RETURN(Array y, call.New(type, x.shape));
  if (x.bytes() > 0) std::memcpy(y.data.get(), x.data.get(), static_cast<size_t>(x.bytes()));
  return y;
}

StatusOr<Array> Cast(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const DType type, CastType(call.node()));
  return call.As(call.In(0), type);
}

StatusOr<Array> CastLike(Call& call) { return call.As(call.In(0), call.In(1).dtype); }

StatusOr<Array> Clip(Call& call) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double low = -kInfinity, high = kInfinity;
  if (call.opset() < 11) {
    SWIZZLE_ASSIGN_OR_RETURN(low, call.Float("min", -std::numeric_limits<float>::infinity()));
    SWIZZLE_ASSIGN_OR_RETURN(high, call.Float("max", std::numeric_limits<float>::infinity()));
  } else {
    for (size_t i = 1; i < 3; ++i) {
      if (call.Has(i)) SWIZZLE_RETURN_IF_ERROR(CheckSameType(call.In(0), call.In(i)));
    }
    SWIZZLE_ASSIGN_OR_RETURN(low, call.RealScalar(1, -kInfinity));
    SWIZZLE_ASSIGN_OR_RETURN(high, call.RealScalar(2, kInfinity));
  }
  return MapNumber(call, [=](auto x) { return elementwise::kClip(x, low, high); });
}

}  // namespace swizzle::interpreter
