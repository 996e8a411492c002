// Computes products and norms of constants, as networks have them of their tables (evaluate.h).
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_EVALUATE_PRODUCTS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_EVALUATE_PRODUCTS_H_

#include <optional>
#include <span>

#include "model_loader/semantics/elements.h"

namespace swizzle {

// MatMul with a matrix on the right, and LayerNormalization over the last dimension, of FP32. Nothing for others.
StatusOr<std::optional<Elements>> EvaluateMatMul(const Node& node, std::span<const Elements* const> inputs);
StatusOr<std::optional<Elements>> EvaluateLayerNorm(const Node& node, std::span<const Elements* const> inputs);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_EVALUATE_PRODUCTS_H_
