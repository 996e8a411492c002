// What config.json says of Qwen2 and Qwen3, as they embed texts. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_QWEN_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_QWEN_CONFIG_H_

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"
#include "model_loader/safetensors/encoder_activation.h"

namespace swizzle {

struct QwenConfig {
  int64_t hidden_size = 0;
  int64_t head_size = 0;
  int64_t num_hidden_layers = 0;
  float theta = 0.0f;
  EncoderActivation activation = EncoderActivation::kSilu;
  float norm_eps = 0.0f;
  bool input_bias = false, output_bias = false;  // of attention's linear layers
  bool norms_heads = false;                      // Qwen3: norms of each query and key before they are rotated
  bool is_causal = true;                         // tokens see those before them only
};

StatusOr<QwenConfig> ReadQwenConfig(const ConfigFields& fields, std::string_view type);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_QWEN_CONFIG_H_
