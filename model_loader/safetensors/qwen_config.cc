#include "model_loader/safetensors/qwen_config.h"

#include <algorithm>
#include <vector>

#include "model_loader/safetensors/attention_config.h"

namespace swizzle {
namespace {

// Windows of causal attention, and scores of the last token.
Status RefuseVariants(const ConfigFields& fields, int64_t layers) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool uses_window, fields.Flag("use_sliding_window", false));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t full, fields.Whole({"max_window_layers"}, 28, {ConfigFields::kMaxExtent, 0}));
  const bool has_window = uses_window && !fields.IsNull("sliding_window");
  const auto absent = [&](int64_t layer) { return has_window && layer >= full; };
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<bool> windowed, ReadWindowed(fields, layers, absent));
  if (std::ranges::find(windowed, true) != windowed.end()) {
    const char* const field = fields.Has("layer_types") ? "layer_types" : "use_sliding_window";
    return Unimplemented("its ", field, " is ", fields.ShownOf(field),
                         "; windows are not supported with this model_type: export the model to ONNX");
  }
  if (!fields.Classifies()) return {};
  return Unimplemented("its architectures is ", fields.ShownOf("architectures"),
                       "; of this model_type only the last hidden state is supported: export the model to ONNX");
}

}  // namespace

StatusOr<QwenConfig> ReadQwenConfig(const ConfigFields& fields, std::string_view type) {
  constexpr int64_t kMaxExtent = ConfigFields::kMaxExtent;
  const bool third = type == "qwen3";
  QwenConfig config;
  SWIZZLE_ASSIGN_OR_RETURN(config.hidden_size, fields.Whole({"hidden_size"}, 4096, {kMaxExtent}));
  int64_t head_size = 128;
  if (!third && !fields.Has("head_dim")) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t heads, fields.Whole({"num_attention_heads"}, 32, {kMaxExtent}));
    SWIZZLE_RETURN_IF_ERROR(CheckHeads(config.hidden_size, heads, "num_attention_heads"));
    head_size = config.hidden_size / heads;
  }
  SWIZZLE_ASSIGN_OR_RETURN(config.head_size, fields.Whole({"head_dim"}, head_size, {kMaxExtent}));
  if (config.head_size % 2 != 0) return InvalidArgument("its head_dim is ", config.head_size, "; it must be even");
  SWIZZLE_ASSIGN_OR_RETURN(config.num_hidden_layers,
                           fields.Whole({"num_hidden_layers"}, 32, {ConfigFields::kMaxLayers}));
  SWIZZLE_RETURN_IF_ERROR(RefuseVariants(fields, config.num_hidden_layers));
  SWIZZLE_ASSIGN_OR_RETURN(config.theta, ReadTheta(fields, kFullAttention, "rope_theta", 10000.0f));
  SWIZZLE_ASSIGN_OR_RETURN(config.activation, ReadActivation(fields, "hidden_act", "silu"));
  SWIZZLE_ASSIGN_OR_RETURN(config.norm_eps, fields.Epsilon("rms_norm_eps", 1e-6f));
  config.input_bias = true;
  if (third) {
    SWIZZLE_ASSIGN_OR_RETURN(config.input_bias, fields.Flag("attention_bias", false));
    config.output_bias = config.input_bias;
  }
  config.norms_heads = third;
  SWIZZLE_ASSIGN_OR_RETURN(config.is_causal, fields.Flag("is_causal", true));
  return config;
}

}  // namespace swizzle
