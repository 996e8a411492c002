// What config.json says of a BERT-like encoder: BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT, ELECTRA, MPNet. Free
// functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// What is computed, and how tensors are called: XLM-RoBERTa and CamemBERT are kRoberta, ELECTRA is kBert.
enum class BertFamily { kBert, kRoberta, kDistilBert, kMpnet };

enum class BertActivation {
  kGelu,
  kGeluTanh,
  kGelu10,  // GELU, between -10 and 10
  kQuickGelu,
  kSilu,
  kMish,
  kRelu,
  kRelu2,  // squared
  kRelu6,
  kLeakyRelu,
  kTanh,
  kSigmoid,
  kLinear,
};

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
  BertActivation activation = BertActivation::kGelu;
  float layer_norm_eps = 0.0f;
  int64_t max_position_embeddings = 0;
  int64_t pad_token_id = 0;  // of kRoberta and kMpnet, whose positions count from it

  int64_t head_size() const { return hidden_size / num_attention_heads; }
};

// Fields that are left out, or null, have the values that transformers gives them. A missing model_type follows from
// architectures, and where these are missing, too, is `type_of_tensors`, which may be empty. Fields that only say how
// large tensors are (vocab_size, intermediate_size, type_vocab_size, pruned_heads) are not read: the tensors' shapes
// are what counts, and in pruned models they vary by layer. INVALID_ARGUMENT, naming the field, if one is of another
// type or out of range, or if nothing tells the kind of model; UNIMPLEMENTED, naming field and value, for other kinds
// of model, activation or position embedding, and for decoders.
StatusOr<BertConfig> ParseBertConfig(std::string_view config, std::string_view type_of_tensors = "");

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_CONFIG_H_
