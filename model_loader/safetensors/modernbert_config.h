// What config.json says of ModernBERT. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_MODERNBERT_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_MODERNBERT_CONFIG_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"
#include "model_loader/safetensors/encoder_activation.h"

namespace swizzle {

// What a classifier reads: the first token, or the mean of the tokens that count.
enum class ClassifierPooling { kFirst, kMean };

struct ModernBertConfig {
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;  // of a layer that no head was pruned from
  std::vector<bool> is_local;       // of each layer, whether it sees only tokens near by
  int64_t reach = 0;                // how far those are away at most
  float global_theta = 0.0f, local_theta = 0.0f;
  EncoderActivation activation = EncoderActivation::kGelu;
  float norm_eps = 0.0f;
  bool norm_bias = false, attention_bias = false, mlp_bias = false;
  // Where architectures says ...ForSequenceClassification.
  bool classifies = false;
  ClassifierPooling pooling = ClassifierPooling::kFirst;
  bool classifier_bias = false;
  EncoderActivation classifier_activation = EncoderActivation::kGelu;

  int64_t head_size() const { return hidden_size / num_attention_heads; }
};

StatusOr<ModernBertConfig> ReadModernBertConfig(const ConfigFields& fields, std::string_view type);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_MODERNBERT_CONFIG_H_
