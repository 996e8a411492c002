// Writes Qwen2 and Qwen3 (Yang et al., 2024 and 2025) as a Graph, as bert_graph.h does BERT: what embeds texts, without
// the head that continues them. Free functions, thread-safe.
//
// Inputs: input_ids and attention_mask, which may leave out tokens of either end. Output: last_hidden_state. Norms are
// by the root mean square, before attention and before the gated perceptron; several heads of queries share one of keys
// and values. Queries and keys are rotated by angles of their positions (rotary_builder.h).
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_QWEN_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_QWEN_GRAPH_H_

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/qwen_config.h"

namespace swizzle {

// Sizes and errors as in bert_graph.h.
StatusOr<Graph> BuildEncoderGraph(const QwenConfig& config, CheckpointWeights weights);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_QWEN_GRAPH_H_
