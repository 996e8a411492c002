// Writes Nomic's BERT (Nussbaum et al., 2024) as a Graph, as bert_graph.h does BERT. Free functions, thread-safe.
//
// Inputs: input_ids, attention_mask and, where the checkpoint has their table, token_type_ids. Outputs:
// last_hidden_state and, where their weights are there, pooler_output and a classifier's logits. Norms stand behind
// attention and behind the perceptron; queries and keys are rotated by angles of their positions (rotary_builder.h).
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_NOMIC_BERT_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_NOMIC_BERT_GRAPH_H_

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/nomic_bert_config.h"

namespace swizzle {

// Sizes and errors as in bert_graph.h.
StatusOr<Graph> BuildEncoderGraph(const NomicBertConfig& config, CheckpointWeights weights);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_NOMIC_BERT_GRAPH_H_
