// Element-wise operators as functions of numbers, and activation functions recognised by their values.
//
// Exporters write GELU and its kin in many orders of Div, Erf, Add and Mul. All of them are the same function, so it is
// the function's values at sample points that are compared, not the operators.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_POINT_FUNCTION_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_POINT_FUNCTION_H_

#include <functional>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// Of the node's inputs, in order. Booleans are 0 and 1.
using PointFunction = std::function<double(std::span<const double>)>;

// The function that an element-wise node applies to inputs of type `dtype`; nothing if it is not such a node. Cast is
// one, and Clip with its bounds as inputs.
std::optional<PointFunction> PointFunctionOf(const Node& node, DType dtype);

// The type of its output, whose inputs are of type `dtype`.
DType PointFunctionType(const Node& node, DType dtype);

// `value` as a tensor of type `dtype` holds it.
double Rounded(double value, DType dtype);

// The points at which functions of one variable are compared.
std::span<const double> SamplePoints();
using Samples = std::vector<double>;  // a function's values at these

struct LinearFunction {
  float scale = 1.0f;
  float shift = 0.0f;
};
struct ClampFunction {
  float low = 0.0f;
  float high = 0.0f;
};
// f(x * scale) / scale
struct NamedFunction {
  Function function;
  float scale = 1.0f;
};
using KnownFunction = std::variant<LinearFunction, ClampFunction, NamedFunction>;

// Nothing if the function is none of those that kernels compute.
std::optional<KnownFunction> Recognised(std::span<const double> samples);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_POINT_FUNCTION_H_
