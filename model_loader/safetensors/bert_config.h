// What config.json says of BERT and of what is computed as it is: RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT, ELECTRA,
// MPNet. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"
#include "model_loader/safetensors/encoder_activation.h"

namespace swizzle {

// What is computed, and how tensors are called: XLM-RoBERTa and CamemBERT are kRoberta, ELECTRA is kBert.
enum class BertFamily { kBert, kRoberta, kDistilBert, kMpnet };

// What stands between an encoder and the scores of labels, where architectures says ...ForSequenceClassification.
enum class BertClassifier {
  kNone,    // they say something else, or nothing
  kPooler,  // BERT: a linear layer on the pooler
  kTanh,    // RoBERTa, its kin and MPNet: of the first token a linear layer, tanh, a linear layer
  kGelu,    // ELECTRA: likewise with GELU
  kRelu,    // DistilBERT: likewise with ReLU
};

struct BertConfig {
  BertFamily family = BertFamily::kBert;
  BertClassifier classifier = BertClassifier::kNone;
  int64_t hidden_size = 0;
  int64_t embedding_size = 0;       // of the tables; where it is not hidden_size, a linear layer stands between
  int64_t num_attention_heads = 0;  // of a layer that no head was pruned from
  int64_t num_hidden_layers = 0;
  EncoderActivation activation = EncoderActivation::kGelu;
  float layer_norm_eps = 0.0f;
  int64_t max_position_embeddings = 0;
  int64_t pad_token_id = 0;  // of kRoberta and kMpnet, whose positions count from it

  int64_t head_size() const { return hidden_size / num_attention_heads; }
};

// Of one of the kinds of model that are computed as BERT is (encoder_config.h), named by its model_type, "electra".
StatusOr<BertConfig> ReadBertConfig(const ConfigFields& fields, std::string_view type);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_
