// A model that takes texts, and gives a vector of each, or of each text or pair of texts the scores of labels: an
// encoder of tokens behind a tokeniser, pooled or classified in its own graph (model_loader/text/pooling.h), or, where
// that gives states of tokens, pooled here (token_pooling.h).
//
// ModelFacts::properties of such a model, beside the encoder's (model_facts.h):
//   swizzle_text          "embedding", "token_embedding" or "classification"
//   swizzle_pooling       "mean", "cls" or "last_token", of an embedding
//   swizzle_normalised    "1": vectors have length 1
//   swizzle_max_tokens    of a text or a pair, special ones included; longer ones are cut off, or refused
#ifndef SWIZZLE_SERVER_MODEL_TEXT_MODEL_H_
#define SWIZZLE_SERVER_MODEL_TEXT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/text/pipeline.h"
#include "model_loader/text/tokenizer.h"
#include "server/model/model.h"
#include "server/model/request.h"

namespace swizzle {

// What the encoder sees as one sequence: a text, or two, as a reranker has them.
struct TextRow {
  std::string_view text;
  std::optional<std::string_view> pair = std::nullopt;
};

// The same as it takes it: at least one token, special ones included.
struct TextTokens {
  std::vector<int32_t> ids, type_ids;  // as many
};

struct TextRules {
  std::function<StatusOr<TextTokens>(const TextRow& row, const TextOptions& options)> encode;  // thread-safe
  // What stands before a text, likewise. INVALID_ARGUMENT where the model has no such prompt. It lasts as this does.
  std::function<StatusOr<std::string_view>(const TextOptions& options)> prompt = nullptr;
  std::shared_ptr<const text::Tokenizer> tokenizer = nullptr;
  int64_t pad_id = 0;
  int64_t max_tokens = 0;  // of a row; for the metadata
  text::Pipeline pipeline = {};
};

inline constexpr std::string_view kTextInput = "text", kEmbeddingOutput = "embedding";
// Of an embedding of tokens, too.
inline constexpr std::string_view kTokensOutput = text::kStatesName;
// Of a classification: the pipeline's function of the logits, and these themselves.
inline constexpr std::string_view kScoresOutput = "scores", kLogitsOutput = "logits";

// The specification of a model of texts whose encoder has this one: input "text", BYTES, [batch, 1], and output
// "embedding", FP32, beside which one of tokens has "token_embeddings", FP32 [batch, tokens of the longest, width],
// zeros behind a text's own; or input [batch, 1] or [batch, 2], and outputs "scores" and "logits", FP32 [batch,
// labels]. All else is the encoder's. INVALID_ARGUMENT where the encoder takes other inputs than input_ids,
// attention_mask and token_type_ids, gives neither one vector of each row nor, with a mask, states of its tokens, or
// scores of another number of labels, or no states where those are to be kept.
StatusOr<ModelSpec> TextSpec(const ModelSpec& encoder, const text::Pipeline& pipeline);

// Gives each of the vectors, FP32 and `width` numbers long, length 1; zeros stay zeros.
void NormaliseVectors(size_t width, std::string& vectors);

// Leaves the first `kept` numbers of each, of models that were trained so that these are a vector, too (Matryoshka).
void CutVectors(size_t width, size_t kept, std::string& vectors);

// Makes scores of logits, likewise.
void ScoreLogits(text::ScoreFunction function, size_t width, std::string& logits);

// `spec` is TextSpec's, possibly changed by a configuration. Thread-safe.
std::shared_ptr<Model> NewTextModel(ModelSpec spec, std::shared_ptr<Model> encoder, TextRules rules);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_TEXT_MODEL_H_
