// A model that takes texts, and gives a vector of each: an encoder of tokens behind a tokeniser, pooled in its own
// graph (model_loader/text/pooling.h).
//
// ModelFacts::properties of such a model, beside the encoder's (model_facts.h):
//   swizzle_text          "embedding"
//   swizzle_normalised    "1": vectors have length 1
//   swizzle_max_tokens    of a text, special ones included; longer ones are cut off
#ifndef SWIZZLE_SERVER_MODEL_TEXT_MODEL_H_
#define SWIZZLE_SERVER_MODEL_TEXT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/model/model.h"

namespace swizzle {

// A text as the encoder takes it: at least one token, special ones included.
struct TextTokens {
  std::vector<int32_t> ids, type_ids;  // as many
};

struct TextRules {
  std::function<StatusOr<TextTokens>(std::string_view text)> encode;  // thread-safe; cuts off what is too long
  int64_t pad_id = 0;
  int64_t max_tokens = 0;   // of a text; for the metadata
  bool normalises = false;  // vectors have length 1
};

inline constexpr std::string_view kTextInput = "text", kEmbeddingOutput = "embedding";

// The specification of a model of texts whose encoder has this one: input "text", BYTES, and output "embedding", FP32.
// All else is the encoder's. INVALID_ARGUMENT where the encoder takes other inputs than input_ids, attention_mask and
// token_type_ids, or gives anything but one vector of each row.
StatusOr<ModelSpec> TextSpec(const ModelSpec& encoder);

// Gives each of the vectors, FP32 and `width` numbers long, length 1; zeros stay zeros.
void NormaliseVectors(size_t width, std::string& vectors);

// `spec` is TextSpec's, possibly changed by a configuration. Thread-safe.
std::shared_ptr<Model> NewTextModel(ModelSpec spec, std::shared_ptr<Model> encoder, TextRules rules);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_TEXT_MODEL_H_
