// What config.json says of Nomic's BERT (nomic-embed-text): as the code writes it that comes with the models, or as
// transformers' own class does, from version 5 on. Tensors have the same names by both. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_NOMIC_BERT_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_NOMIC_BERT_CONFIG_H_

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"
#include "model_loader/safetensors/encoder_activation.h"

namespace swizzle {

struct NomicBertConfig {
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;  // of a layer that no head was pruned from
  int64_t num_hidden_layers = 0;
  float theta = 0.0f;
  float scaling_factor = 0.0f;    // of theta in long sequences (rotary_builder.h); 0 where it stays
  int64_t trained_positions = 0;  // beyond which sequences are long
  bool interleaved = false;       // angle i turns the numbers 2i and 2i + 1 of a head, not i and half a head behind
  bool is_gated = false;          // the perceptron multiplies what it makes by what it activates
  EncoderActivation activation = EncoderActivation::kGelu;
  float norm_eps = 0.0f;
  bool attention_bias = false, inner_bias = false, outer_bias = false;
  bool classifies = false;  // architectures says ...ForSequenceClassification

  int64_t head_size() const { return hidden_size / num_attention_heads; }
};

StatusOr<NomicBertConfig> ReadNomicBertConfig(const ConfigFields& fields, std::string_view type);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_NOMIC_BERT_CONFIG_H_
