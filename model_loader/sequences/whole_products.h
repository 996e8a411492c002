// Whole numbers of graphs over tokens, before the walk over their nodes: constants become the real numbers that they
// stand for (Value::wholes remembers them), and products that are quantised dynamically become linear layers.
// Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_PRODUCTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_PRODUCTS_H_

#include "model_loader/graph/graph.h"

namespace swizzle::sequences {

// Attribute of a MatMul, Gemm or com.microsoft's Attention whose input may be quantised when it runs, each token by a
// scale of its own.
inline constexpr char kByPosition[] = "swizzle_by_position";

// What it does not know is left to the walk to refuse. It knows DynamicQuantizeLinear, MatMulInteger, Cast and Mul, as
// ONNX Runtime's quantize_dynamic writes them, and what its optimiser makes of these (com.microsoft's
// DynamicQuantizeMatMul, MatMulIntegerToFloat, QAttention and QEmbedLayerNormalization); the same behind
// QuantizeLinear, perhaps with an Add of INT32 before the Cast, as SparseML writes it, also of two activations;
// QLinearMatMul and com.microsoft's QLinearAdd; QuantizeLinear and DequantizeLinear of constants; tables of whole
// numbers that Gather takes rows of. INVALID_ARGUMENT where numbers and scales contradict each other.
Status ResolveWholeNumbers(Graph& graph);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_WHOLE_PRODUCTS_H_
