// Axes as ONNX gives them, counted from the front or, below 0, from the end. Pure functions; those that take a node
// name it in their errors.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_AXES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_AXES_H_

#include <cstdint>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// The axis counted from the front. INVALID_ARGUMENT unless -rank <= axis < rank.
StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank);
StatusOr<int64_t> NormalAxis(const Node& node, int64_t axis, int64_t rank);

// The same of each, ascending; INVALID_ARGUMENT if one is given twice.
StatusOr<std::vector<int64_t>> NormalAxes(std::vector<int64_t> axes, int64_t rank);

// Transpose's attribute perm, reversed axes where it has none, all counted from the front. INVALID_ARGUMENT unless it
// is a permutation of `rank` axes.
StatusOr<std::vector<int64_t>> PermutationOf(const Node& node, size_t rank);

// Flatten's axis, of which there is one more than dimensions: what comes before it is joined, and what follows.
StatusOr<int64_t> FlattenAxis(const Node& node, int64_t rank);

// What Softmax and its kin run over, ascending: one axis from opset 13 on, before that it and all behind it.
StatusOr<std::vector<int64_t>> SoftmaxAxes(const Node& node, int64_t opset, int64_t rank);

// Whether a reduction leaves the axes that it is over, as 1: keepdims.
StatusOr<bool> KeepsAxes(const Node& node);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_AXES_H_
