// Arithmetic on constants of any size and type, as weights are: element by element, in double precision, rounded once
// to the type of the result. What is computed on a few numbers of shapes is semantics/evaluate.h. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_TENSOR_ARITHMETIC_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_TENSOR_ARITHMETIC_H_

#include <optional>
#include <string_view>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Whether the types below are computed in: numbers that doubles hold exactly.
bool IsExactInDouble(DType dtype);

// Cast. REQUIRES: both types are exact in doubles, and `to` is a floating one, or holds all that `tensor` may.
Tensor CastTensor(const Tensor& tensor, DType to);

// Add, Sub, Mul or Div, by the operator's name, of two tensors of one floating type or of INT32; nothing where there is
// no such operator, integers are divided, or the result is larger than both.
std::optional<Tensor> CombinedTensors(std::string_view op, const Tensor& a, const Tensor& b);

// (whole - zero point) * scale of dimension `axis`, in the scale's floating type; nothing where shapes do not fit.
std::optional<Tensor> ScaledTensor(const Tensor& wholes, const Tensor& scales, const Tensor* zero_points, int64_t axis);

// Dimension d of the result is dimension permutation[d]. REQUIRES: a permutation, of a type that is exact in doubles.
Tensor TransposedTensor(const Tensor& tensor, const std::vector<int64_t>& permutation);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_TENSOR_ARITHMETIC_H_
