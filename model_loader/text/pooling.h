// One vector of each sequence: of what an encoder says of its tokens, by nodes behind its graph in the spelling of
// Sentence Transformers' own exports, so that they run where the encoder does; or the logits that a classifier has.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_POOLING_H_
#define SWIZZLE_MODEL_LOADER_TEXT_POOLING_H_

#include <string_view>

#include "model_loader/graph/graph.h"

namespace swizzle::text {

enum class Pooling : uint8_t {
  kMean,   // of all tokens that the mask lets through
  kFirst,  // the first token's, which BERT and its kin call [CLS]
  kLast,   // the last one's that the mask lets through, behind which there is padding alone
};
std::string_view PoolingName(Pooling pooling);  // "mean", "cls", "last_token"

// What the graph's one output is called then.
inline constexpr std::string_view kPooledName = "sentence_embedding";

// Leaves the graph with one output, [batch, hidden]: its output of that name, if it has one, else its states of tokens
// (last_hidden_state, token_embeddings, or its only output [batch, tokens, hidden]), pooled; of kLast these states,
// which are pooled behind the graph, since no plan takes one that looks for the last token. INVALID_ARGUMENT, naming
// what there is, where the graph has no such output, or, for kMean, no input attention_mask.
Status PoolTokens(Pooling pooling, Graph& graph);

// What the states of tokens are called where they are kept beside that.
inline constexpr std::string_view kStatesName = "token_embeddings";

// The output that PoolTokens pools, by that name. INVALID_ARGUMENT, naming what there is, where the graph has none.
StatusOr<GraphOutput> StatesOf(const Graph& graph);

// Leaves the graph of a classifier with one output, its "logits" or else the only one that it has, [batch, labels],
// unless its name is that of an encoder's vector ("sentence_embedding", "pooler_output"). INVALID_ARGUMENT, naming what
// there is, where it has no such output.
Status KeepLogits(Graph& graph);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_POOLING_H_
