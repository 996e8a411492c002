#include "model_loader/safetensors/modernbert_config.h"

#include <string>

#include "model_loader/safetensors/attention_config.h"

namespace swizzle {
namespace {

Status ReadClassifier(const ConfigFields& fields, ModernBertConfig& config) {
  config.classifies = fields.Classifies();
  SWIZZLE_ASSIGN_OR_RETURN(config.classifier_bias, fields.Flag("classifier_bias", false));
  SWIZZLE_ASSIGN_OR_RETURN(config.classifier_activation, ReadActivation(fields, "classifier_activation"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string pooling, fields.Text("classifier_pooling", "cls"));
  if (pooling != "cls" && pooling != "mean") {
    return InvalidArgument("its classifier_pooling is ", ConfigFields::Shown(pooling), "; it must be cls or mean");
  }
  config.pooling = pooling == "cls" ? ClassifierPooling::kFirst : ClassifierPooling::kMean;
  return {};
}

}  // namespace

StatusOr<ModernBertConfig> ReadModernBertConfig(const ConfigFields& fields, std::string_view /*type*/) {
  constexpr int64_t kMaxExtent = ConfigFields::kMaxExtent;
  ModernBertConfig config;
  SWIZZLE_ASSIGN_OR_RETURN(config.hidden_size, fields.Whole({"hidden_size"}, 768, {kMaxExtent}));
  SWIZZLE_ASSIGN_OR_RETURN(config.num_attention_heads, fields.Whole({"num_attention_heads"}, 12, {kMaxExtent}));
  SWIZZLE_RETURN_IF_ERROR(CheckHeads(config.hidden_size, config.num_attention_heads, "num_attention_heads"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t layers, fields.Whole({"num_hidden_layers"}, 22, {ConfigFields::kMaxLayers}));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t stride, fields.Whole({"global_attn_every_n_layers"}, 3, {kMaxExtent}));
  const auto is_local = [&](int64_t layer) { return layer % stride != 0; };
  SWIZZLE_ASSIGN_OR_RETURN(config.is_local, ReadWindowed(fields, layers, is_local));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t window, fields.Whole({"local_attention"}, 128, {kMaxExtent}));
  config.reach = window / 2;
  SWIZZLE_ASSIGN_OR_RETURN(config.global_theta, ReadTheta(fields, kFullAttention, "global_rope_theta", 160000.0f));
  // A period that is null, not left out, is that of the layers that see all.
  const float local = fields.IsNull("local_rope_theta") ? config.global_theta : 10000.0f;
  SWIZZLE_ASSIGN_OR_RETURN(config.local_theta, ReadTheta(fields, kSlidingAttention, "local_rope_theta", local));
  SWIZZLE_ASSIGN_OR_RETURN(config.activation, ReadActivation(fields, "hidden_activation"));
  SWIZZLE_ASSIGN_OR_RETURN(config.norm_eps, fields.Epsilon("norm_eps", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(config.norm_bias, fields.Flag("norm_bias", false));
  SWIZZLE_ASSIGN_OR_RETURN(config.attention_bias, fields.Flag("attention_bias", false));
  SWIZZLE_ASSIGN_OR_RETURN(config.mlp_bias, fields.Flag("mlp_bias", false));
  SWIZZLE_RETURN_IF_ERROR(ReadClassifier(fields, config));
  return config;
}

}  // namespace swizzle
