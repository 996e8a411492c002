// What config.json says of a BERT-like encoder: BERT, RoBERTa, XLM-RoBERTa, DistilBERT. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

enum class BertFamily { kBert, kRoberta, kDistilBert };

enum class BertActivation { kGelu, kGeluTanh, kRelu };

struct BertConfig {
  BertFamily family = BertFamily::kBert;  // kRoberta: XLM-RoBERTa too
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;  // of a layer that no head was pruned from
  int64_t num_hidden_layers = 0;
  BertActivation activation = BertActivation::kGelu;
  float layer_norm_eps = 0.0f;
  int64_t max_position_embeddings = 0;
  int64_t pad_token_id = 0;  // read by kRoberta, whose positions count from it

  int64_t head_size() const { return hidden_size / num_attention_heads; }
};

// Fields that only say how large tensors are (vocab_size, intermediate_size, type_vocab_size, pruned_heads) are not
// read: the tensors' shapes are what counts, and in pruned models they vary by layer. INVALID_ARGUMENT, naming the
// field, if one is missing, of another type or out of range; UNIMPLEMENTED, naming field and value, for other kinds of
// model, activation or position embedding, and for decoders.
StatusOr<BertConfig> ParseBertConfig(std::string_view config);

// One weight of the encoder, by the name that its `.weight` or `.bias` has in BERT without a prefix:
// "encoder.layer.3.attention.self.query.weight". Empty for tensors of checkpoints of this family that the encoder does
// not read: buffers such as position_ids, and heads.
//
// Takes off prefixes ("bert.", "roberta.", "distilbert.", "model."), and translates DistilBERT's names and the old ones
// of LayerNorm (gamma, beta).
std::string CanonicalName(BertFamily family, const std::string& name);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_
