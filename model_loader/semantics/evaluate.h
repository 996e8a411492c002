// Computes a node whose inputs are all known: the shape arithmetic that exporters write around Reshape, and arithmetic
// on constants.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_EVALUATE_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_EVALUATE_H_

#include <optional>
#include <span>

#include "model_loader/semantics/elements.h"

namespace swizzle {

// The most elements one evaluated node may have.
inline constexpr int64_t kMaxEvaluatedElements = int64_t{1} << 22;

// Whether Evaluate knows the operator.
bool IsEvaluable(const Node& node);

// The node's output. `inputs` are the node's, null where left out. Nothing if the result is not of a kind that can be
// known (the batch size added to a number, too many elements); INVALID_ARGUMENT, naming the node, if it breaks its
// operator's rules.
StatusOr<std::optional<Elements>> Evaluate(const Node& node, std::span<const Elements* const> inputs);

// The elements of a shape: dimension 0 may be the free batch. Shape's start and end attributes are honoured.
StatusOr<Elements> EvaluateShape(const Node& node, const Shape& shape);

// Axes of Squeeze and Unsqueeze, from the attribute (below opset 13) or from input 1; nothing where there are neither.
StatusOr<std::optional<std::vector<int64_t>>> AxesGiven(const Node& node, const Elements* input);
// Likewise, counted from the front, ascending. INVALID_ARGUMENT unless each is one of `rank` and given once.
StatusOr<std::optional<std::vector<int64_t>>> AxesOf(const Node& node, const Elements* input, int64_t rank);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_EVALUATE_H_
