#include "model_loader/safetensors/nomic_bert_config.h"

#include <algorithm>
#include <array>
#include <string>

#include "model_loader/safetensors/attention_config.h"

namespace swizzle {
namespace {

constexpr char kHeads[] = "n_head", kOtherHeads[] = "num_attention_heads";
constexpr char kFraction[] = "rotary_emb_fraction", kRope[] = "rope_parameters";
constexpr int64_t kTrainedPositions = 2048;

// The perceptrons by the names of the field. Their GELU is the exact one.
struct Perceptron {
  std::string_view name;
  EncoderActivation activation;
  bool is_gated;
};
constexpr auto kPerceptrons = std::to_array<Perceptron>({
    {"swiglu", EncoderActivation::kSilu, true},
    {"geglu", EncoderActivation::kGelu, true},
    {"glu", EncoderActivation::kSigmoid, true},
    {"gelu", EncoderActivation::kGelu, false},
});

Status ReadPerceptron(const ConfigFields& fields, NomicBertConfig& config) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string name, fields.Text("activation_function", "gelu_new"));
  const auto found = std::ranges::find(kPerceptrons, name, &Perceptron::name);
  if (found == kPerceptrons.end()) {
    std::string known;
    for (const Perceptron& perceptron : kPerceptrons) known += Concat(known.empty() ? "" : ", ", perceptron.name);
    return Unimplemented("its activation_function is ", ConfigFields::Shown(name), "; supported are ", known);
  }
  config.activation = found->activation;
  config.is_gated = found->is_gated;
  SWIZZLE_ASSIGN_OR_RETURN(config.inner_bias, fields.Flag("mlp_fc1_bias", true));
  SWIZZLE_ASSIGN_OR_RETURN(config.outer_bias, fields.Flag("mlp_fc2_bias", true));
  return {};
}

// Angles turn whole heads.
Status CheckFraction(const ConfigFields& fields, const char* name, const char* absent) {
  const std::string fraction = fields.Has(name) ? fields.ShownOf(name) : absent;
  if (fraction == "1" || fraction == "1.0") return {};
  return Unimplemented("its ", name, " is ", fraction, "; only 1 is supported: export the model to ONNX");
}

// What no published model of texts has, but the code that it comes with knows.
Status RefuseVariants(const ConfigFields& fields) {
  for (const char* name : {"prenorm", "causal", "use_rms_norm", "parallel_block", "rotary_head_dim"}) {
    SWIZZLE_ASSIGN_OR_RETURN(const bool value, fields.Flag(name, false));
    if (value) return Unimplemented("its ", name, " is true; only false is supported: export the model to ONNX");
  }
  for (const char* name : {"moe_every_n_layers", "rotary_emb_scale_base"}) {
    if (!fields.Has(name) || fields.ShownOf(name) == "0") continue;
    return Unimplemented("its ", name, " is ", fields.ShownOf(name),
                         "; only null is supported: export the model to ONNX");
  }
  return CheckFraction(fields, kFraction, "0");
}

// As Nomic's code writes it.
Status ReadNomicsFields(const ConfigFields& fields, NomicBertConfig& config) {
  SWIZZLE_RETURN_IF_ERROR(RefuseVariants(fields));
  SWIZZLE_ASSIGN_OR_RETURN(config.theta, ReadTheta(fields, kFullAttention, "rotary_emb_base", 10000.0f));
  SWIZZLE_ASSIGN_OR_RETURN(config.scaling_factor, fields.Positive("rotary_scaling_factor", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(config.trained_positions,
                           fields.Whole({"max_trained_positions"}, kTrainedPositions, {ConfigFields::kMaxExtent}));
  SWIZZLE_ASSIGN_OR_RETURN(config.interleaved, fields.Flag("rotary_emb_interleaved", false));
  SWIZZLE_RETURN_IF_ERROR(ReadPerceptron(fields, config));
  SWIZZLE_ASSIGN_OR_RETURN(config.norm_eps, fields.Epsilon("layer_norm_epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(config.attention_bias, fields.Flag("qkv_proj_bias", true));
  return {};
}

// As transformers writes it, whose perceptrons are gated, and which knows no biases.
Status ReadTransformersFields(const ConfigFields& fields, NomicBertConfig& config) {
  constexpr float kTheta = 1000.0f;
  config.is_gated = true;
  SWIZZLE_ASSIGN_OR_RETURN(config.activation, ReadActivation(fields, "hidden_act", "silu"));
  SWIZZLE_ASSIGN_OR_RETURN(config.norm_eps, fields.Epsilon("layer_norm_eps", 1e-12f));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t size,
                           fields.Whole({"head_dim"}, config.head_size(), {ConfigFields::kMaxExtent}));
  if (size != config.head_size()) {
    return Unimplemented("its head_dim is ", size, "; only ", config.head_size(),
                         ", hidden_size / num_attention_heads, is supported: export the model to ONNX");
  }
  SWIZZLE_ASSIGN_OR_RETURN(const ConfigFields rope, fields.Within(kRope));
  SWIZZLE_RETURN_IF_ERROR(CheckFraction(rope, "partial_rotary_factor", "1"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string type, rope.Text("rope_type", "default"));
  if (type != "dynamic") {
    SWIZZLE_ASSIGN_OR_RETURN(config.theta, ReadTheta(fields, kFullAttention, "rope_theta", kTheta));
    return {};
  }
  if (!rope.Has("factor")) return InvalidArgument("its ", kRope, " is ", fields.ShownOf(kRope), ", without a factor");
  SWIZZLE_ASSIGN_OR_RETURN(config.theta, rope.Positive("rope_theta", kTheta));
  SWIZZLE_ASSIGN_OR_RETURN(config.scaling_factor, rope.Positive("factor", 0.0f));
  SWIZZLE_ASSIGN_OR_RETURN(config.trained_positions,
                           fields.Whole({"max_position_embeddings"}, kTrainedPositions, {ConfigFields::kMaxExtent}));
  return {};
}

}  // namespace

StatusOr<NomicBertConfig> ReadNomicBertConfig(const ConfigFields& fields, std::string_view /*type*/) {
  constexpr int64_t kMaxExtent = ConfigFields::kMaxExtent, kMaxLayers = ConfigFields::kMaxLayers;
  const bool is_transformers = fields.Has(kRope) && !fields.Has(kFraction);
  NomicBertConfig config;
  SWIZZLE_ASSIGN_OR_RETURN(config.hidden_size, fields.Whole({"n_embd", "hidden_size"}, 768, {kMaxExtent}));
  SWIZZLE_ASSIGN_OR_RETURN(config.num_attention_heads, fields.Whole({kHeads, kOtherHeads}, 12, {kMaxExtent}));
  SWIZZLE_RETURN_IF_ERROR(
      CheckHeads(config.hidden_size, config.num_attention_heads, fields.Has(kHeads) ? kHeads : kOtherHeads));
  SWIZZLE_ASSIGN_OR_RETURN(config.num_hidden_layers, fields.Whole({"n_layer", "num_hidden_layers"}, 12, {kMaxLayers}));
  SWIZZLE_RETURN_IF_ERROR(is_transformers ? ReadTransformersFields(fields, config) : ReadNomicsFields(fields, config));
  config.classifies = fields.Classifies();
  return config;
}

}  // namespace swizzle
