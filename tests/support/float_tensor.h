// Tensors of a few numbers, written where they are used.
#ifndef SWIZZLE_TESTS_SUPPORT_FLOAT_TENSOR_H_
#define SWIZZLE_TESTS_SUPPORT_FLOAT_TENSOR_H_

#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle::testing {

inline Tensor Floats(Shape shape, const std::vector<float>& values) { return Tensor::Floats(std::move(shape), values); }

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_FLOAT_TENSOR_H_
