// Writes DeBERTa-v2 and v3 (He et al., "DeBERTa", ICLR 2021; "DeBERTaV3", ICLR 2023) as a Graph, as bert_graph.h does
// BERT. Free functions, thread-safe.
//
// Inputs: input_ids, attention_mask and, where there is a table of them, token_type_ids. Outputs: last_hidden_state and
// a classifier's logits. Scores have products of queries and keys with vectors of places, taken by distance.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_DEBERTA_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_DEBERTA_GRAPH_H_

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/deberta_config.h"

namespace swizzle {

// Sizes and errors as in bert_graph.h. UNIMPLEMENTED where places share projections that are whole numbers.
StatusOr<Graph> BuildEncoderGraph(const DebertaConfig& config, CheckpointWeights weights);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_DEBERTA_GRAPH_H_
