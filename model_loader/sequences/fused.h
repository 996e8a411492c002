// The fused operators of com.microsoft, which ONNX Runtime's optimisers write; its Attention is in attention.h.
// Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_FUSED_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_FUSED_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// FastGelu, BiasGelu: a bias, then the function.
StatusOr<Form> InterpretBiasGelu(Context& context);
// x + skip + bias, normalised; the sum is output 3.
StatusOr<Form> InterpretSkipLayerNorm(Context& context);
// Embeddings of ids, positions and segments, summed and normalised. Output 1, the number of tokens that the mask lets
// through, stands for the mask.
StatusOr<Form> InterpretEmbedLayerNorm(Context& context);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_FUSED_H_
