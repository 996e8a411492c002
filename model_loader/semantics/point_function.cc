#include "model_loader/semantics/point_function.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/operator/element_functions.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/elements.h"
#include "model_loader/semantics/functions.h"

namespace swizzle {
namespace {

using Inputs = std::span<const double>;

struct NamedPointFunction {
  std::string_view op;
  size_t inputs;
  double (*apply)(Inputs);
};

// Rows of functions of one number and of two.
template <typename Function>
constexpr NamedPointFunction One(std::string_view op, Function) {
  return {op, 1, [](Inputs x) -> double { return Function()(x[0]); }};
}
template <typename Function>
constexpr NamedPointFunction Two(std::string_view op, Function) {
  return {op, 2, [](Inputs x) -> double { return Function()(x[0], x[1]); }};
}

constexpr NamedPointFunction kFunctions[] = {
    One("Abs", elementwise::kAbs),
    Two("Add", elementwise::kAdd),
    Two("And", elementwise::kAnd),
    One("Ceil", elementwise::kCeil),
    One("Cos", elementwise::kCos),
    Two("Div", elementwise::kDiv),
    Two("Equal", elementwise::kEqual),
    One("Erf", elementwise::kErf),
    One("Exp", elementwise::kExp),
    One("Floor", elementwise::kFloor),
    Two("Greater", elementwise::kGreater),
    Two("GreaterOrEqual", elementwise::kGreaterOrEqual),
    One("IsNaN", elementwise::kIsNaN),
    Two("Less", elementwise::kLess),
    Two("LessOrEqual", elementwise::kLessOrEqual),
    One("Log", elementwise::kLog),
    Two("Max", elementwise::kMax),
    Two("Min", elementwise::kMin),
    Two("Mul", elementwise::kMul),
    One("Neg", elementwise::kNeg),
    One("Not", elementwise::kNot),
    Two("Or", elementwise::kOr),
    Two("Pow", elementwise::kPow),
    One("Reciprocal", elementwise::kReciprocal),
    One("Relu", elementwise::kRelu),
    One("Sigmoid", elementwise::kSigmoid),
    One("Sign", elementwise::kSign),
    One("Sin", elementwise::kSin),
    One("Sqrt", elementwise::kSqrt),
    Two("Sub", elementwise::kSub),
    One("Tanh", elementwise::kTanh),
    {"Where", 3, [](Inputs x) { return x[0] != 0 ? x[1] : x[2]; }},
    Two("Xor", elementwise::kXor),
};

std::optional<PointFunction> ClipOf(const Node& node) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto low = FloatAttribute(node, "min", -infinity), high = FloatAttribute(node, "max", infinity);
  if (!low.ok() || !high.ok()) return std::nullopt;
  return [low = double{*low}, high = double{*high}](Inputs x) {
    const auto bound = [&](size_t i, double absent) { return x.size() > i && !std::isnan(x[i]) ? x[i] : absent; };
    return elementwise::kClip(x[0], bound(1, low), bound(2, high));
  };
}

std::optional<PointFunction> GeluOf(const Node& node) {
  const auto kind = GeluKindOf(node);
  if (!kind.ok()) return std::nullopt;
  if (*kind == FunctionKind::kGeluTanh) return [](Inputs x) { return elementwise::kGeluTanh(x[0]); };
  return [](Inputs x) { return elementwise::kGelu(x[0]); };
}

std::optional<PointFunction> CastTo(DType dtype) {
  return [dtype](Inputs x) { return Rounded(x[0], dtype); };
}

constexpr auto kSamplePoints = [] {
  constexpr int kPerUnit = 4, kReach = 8;
  constexpr double kFar[] = {12, 20, 50, 100, 1e3, 1e4, 1e6};
  std::array<double, 2 * kReach * kPerUnit + 1 + 2 * std::size(kFar)> points{};
  size_t count = 0;
  for (double far : kFar) {
    points[count++] = far;
    points[count++] = -far;
  }
  for (int i = -kReach * kPerUnit; i <= kReach * kPerUnit; ++i) points[count++] = static_cast<double>(i) / kPerUnit;
  return points;
}();

// Exporters round their constants to FP32.
bool AreClose(double a, double b, double x) {
  constexpr double kTolerance = 1e-6;
  return a == b || std::abs(a - b) <= kTolerance * std::max({1.0, std::abs(x), std::abs(a)});
}

template <typename F>
bool Matches(std::span<const double> samples, const F& function) {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!AreClose(samples[i], function(kSamplePoints[i]), kSamplePoints[i])) return false;
  }
  return true;
}

double SampleAt(std::span<const double> samples, double x) {
  return samples[static_cast<size_t>(std::find(kSamplePoints.begin(), kSamplePoints.end(), x) - kSamplePoints.begin())];
}

}  // namespace

double Rounded(double value, DType dtype) {
  if (dtype == DType::kFloat32) return static_cast<float>(value);
  if (dtype == DType::kBool) return value != 0.0 ? 1.0 : 0.0;
  return IsFloating(dtype) ? value : std::trunc(value);
}

DType PointFunctionType(const Node& node, DType dtype) {
  constexpr std::string_view kTests[] = {"And", "Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual",
                                         "Not", "Or",    "Xor"};
  if (std::find(std::begin(kTests), std::end(kTests), node.op) != std::end(kTests)) return DType::kBool;
  if (node.op != "Cast") return dtype;
  return FoldableCastType(node).value_or(dtype);
}

std::optional<PointFunction> PointFunctionOf(const Node& node, DType dtype) {
  if (node.attributes.count("axis") > 0) return std::nullopt;  // the broadcasting of opset 6
  if (node.op == "Clip") return ClipOf(node);
  if (node.op == "Gelu") return GeluOf(node);
  if (node.op == "Cast") {
    const auto target = FoldableCastType(node);
    return target ? CastTo(*target) : std::nullopt;
  }
  if (node.op == "QuickGelu") {
    const auto alpha = FloatAttribute(node, "alpha", 1.702f);
    if (!alpha.ok()) return std::nullopt;
    return [alpha = double{*alpha}](Inputs x) { return x[0] * elementwise::kSigmoid(alpha * x[0]); };
  }
  if (node.op == "Div" && !IsFloating(dtype)) return [](Inputs x) { return std::trunc(x[0] / x[1]); };
  for (const NamedPointFunction& function : kFunctions) {
    if (function.op == node.op && function.inputs == node.inputs.size()) return function.apply;
  }
  return std::nullopt;
}

std::span<const double> SamplePoints() { return kSamplePoints; }

std::optional<KnownFunction> Recognised(std::span<const double> samples) {
  const double zero = SampleAt(samples, 0.0), one = SampleAt(samples, 1.0);
  if (Matches(samples, [&](double x) { return (one - zero) * x + zero; })) {
    return LinearFunction{static_cast<float>(one - zero), static_cast<float>(zero)};
  }
  const auto extremes = std::minmax_element(samples.begin(), samples.end());
  const double low = *extremes.first, high = *extremes.second;
  if (Matches(samples, [&](double x) { return std::clamp(x, low, high); })) {
    const float infinity = std::numeric_limits<float>::infinity();
    const bool bounded_below = low > kSamplePoints[1] && SampleAt(samples, -1e6) == low && low > -1e6;
    const bool bounded_above = SampleAt(samples, 1e6) == high && high < 1e6;
    return ClampFunction{bounded_below ? static_cast<float>(low) : -infinity,
                         bounded_above ? static_cast<float>(high) : infinity};
  }
  const auto named = [](FunctionKind kind) { return NamedFunction{{kind}}; };
  if (Matches(samples, elementwise::kGelu)) return named(FunctionKind::kGelu);
  if (Matches(samples, elementwise::kGeluTanh)) return named(FunctionKind::kGeluTanh);
  if (Matches(samples, elementwise::kSigmoid)) return named(FunctionKind::kSigmoid);
  if (Matches(samples, elementwise::kTanh)) return named(FunctionKind::kTanh);
  if (Matches(samples, elementwise::kSilu)) return named(FunctionKind::kSilu);
  // x * sigmoid(a x), whose value at 1 gives a.
  const double a = std::log(one / (1.0 - one));
  if (std::isfinite(a) && a != 0.0 && Matches(samples, [&](double x) { return x * elementwise::kSigmoid(a * x); })) {
    return NamedFunction{{FunctionKind::kSilu}, static_cast<float>(a)};
  }
  return std::nullopt;
}

}  // namespace swizzle
