// What config.json says of DeBERTa-v2 and v3. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_DEBERTA_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_DEBERTA_CONFIG_H_

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"
#include "model_loader/safetensors/encoder_activation.h"

namespace swizzle {

struct DebertaConfig {
  int64_t hidden_size = 0;
  int64_t embedding_size = 0;  // of the table; where it is not hidden_size, a linear layer stands between
  int64_t num_attention_heads = 0;
  int64_t num_hidden_layers = 0;
  int64_t span = 0;         // places on either side of a token
  bool in_buckets = false;  // far places are shared, the farther the more
  int64_t farthest = 0;     // in buckets: the distance that the last one begins before
  bool of_queries = true;   // whether queries meet places ("c2p"), and keys ("p2c")
  bool of_keys = true;
  bool shares_projections = false;  // with queries and keys; else places have projections of their own
  bool norms_places = false;
  EncoderActivation activation = EncoderActivation::kGelu;
  float layer_norm_eps = 0.0f;
  // Where architectures says ...ForSequenceClassification.
  bool classifies = false;
  EncoderActivation pooler_activation = EncoderActivation::kGelu;

  int64_t head_size() const { return hidden_size / num_attention_heads; }
};

// UNIMPLEMENTED, naming the field, for what no published checkpoint has: positions added to embeddings, attention
// without places; and for convolutions beside the first layer, as the largest v2 have.
StatusOr<DebertaConfig> ReadDebertaConfig(const ConfigFields& fields, std::string_view type);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_DEBERTA_CONFIG_H_
