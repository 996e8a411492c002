// Writes ModernBERT (Warner et al., 2024) as a Graph, as bert_graph.h does BERT. Free functions, thread-safe.
//
// Inputs: input_ids and attention_mask. Outputs: last_hidden_state and a classifier's logits. Norms stand before
// attention and before the gated perceptron. Queries and keys are rotated by angles of their positions
// (rotary_builder.h); most layers see only tokens near by.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_MODERNBERT_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_MODERNBERT_GRAPH_H_

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/modernbert_config.h"

namespace swizzle {

// Sizes and errors as in bert_graph.h.
StatusOr<Graph> BuildEncoderGraph(const ModernBertConfig& config, CheckpointWeights weights);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_MODERNBERT_GRAPH_H_
