// Whole numbers of graphs over tokens, before the walk over their nodes: constants become the real numbers that they
// stand for (Value::wholes remembers them), and products that are quantised dynamically become linear layers.
// Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_PRODUCTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_PRODUCTS_H_

#include "model_loader/graph/graph.h"

namespace swizzle::sequences {

// What it does not know is left to the walk to refuse. It knows the products of semantics/integer_products.h;
// com.microsoft's QAttention and QEmbedLayerNormalization, which ONNX Runtime's optimiser makes of such; QLinearMatMul
// and com.microsoft's QLinearAdd; QuantizeLinear and DequantizeLinear of constants. INVALID_ARGUMENT where numbers and
// scales contradict each other.
Status ResolveWholeNumbers(Graph& graph);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_PRODUCTS_H_
