#include "model_loader/safetensors/bert_config.h"

#include <cmath>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "model_loader/safetensors/strict_json.h"

namespace swizzle {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxExtent = int64_t{1} << 24;  // of any dimension

// Looks fields up by name and says what is wrong with them.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  bool Has(const char* name) const { return json_.contains(name) && !json_[name].is_null(); }

  // From 1, or `least`, to `most`.
  StatusOr<int64_t> Whole(const char* name, int64_t most, int64_t least = 1) const {
    if (!Has(name)) return InvalidArgument("it lacks the field ", name);
    const Json& value = json_[name];
    if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= kMaxExtent)) {
      const int64_t whole = value.get<int64_t>();
      if (whole >= least && whole <= most) return whole;
    }
    return InvalidArgument("its ", name, " is ", Shown(value), "; it must be a whole number from ", least, " to ",
                           most);
  }

  StatusOr<std::string> Text(const char* name, const std::string& absent) const {
    if (!Has(name)) return absent;
    if (json_[name].is_string()) return json_[name].get<std::string>();
    return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be a string");
  }

  Status RefuseTrue(const char* name) const {
    if (!Has(name) || json_[name] == false) return {};
    return Unimplemented("its ", name, " is ", Shown(json_[name]), "; only encoders are supported");
  }

  StatusOr<float> Epsilon(const char* name) const {
    if (!Has(name)) return InvalidArgument("it lacks the field ", name);
    const double value = json_[name].is_number() ? json_[name].get<double>() : -1.0;
    if (value > 0.0 && value < 1.0) return static_cast<float>(value);
    return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be a number between 0 and 1");
  }

  // A value for a message.
  static std::string Shown(const Json& value) {
    constexpr size_t kMaxBytes = 64;
    const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
    return text.size() <= kMaxBytes ? text : text.substr(0, kMaxBytes) + "...";
  }

 private:
  const Json& json_;
};

StatusOr<BertFamily> ReadFamily(const Fields& fields) {
  if (!fields.Has("model_type")) return InvalidArgument("it lacks the field model_type");
  SWIZZLE_ASSIGN_OR_RETURN(const std::string type, fields.Text("model_type", ""));
  if (type == "bert") return BertFamily::kBert;
  if (type == "roberta" || type == "xlm-roberta") return BertFamily::kRoberta;
  if (type == "distilbert") return BertFamily::kDistilBert;
  return Unimplemented("its model_type is ", Fields::Shown(type), "; supported are bert, roberta, xlm-roberta and ",
                       "distilbert: export the model to ONNX");
}

StatusOr<BertActivation> ReadActivation(const Fields& fields, const char* name) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string activation, fields.Text(name, "gelu"));
  if (activation == "gelu" || activation == "gelu_python") return BertActivation::kGelu;
  if (activation == "gelu_new" || activation == "gelu_fast" || activation == "gelu_pytorch_tanh") {
    return BertActivation::kGeluTanh;
  }
  if (activation == "relu") return BertActivation::kRelu;
  return Unimplemented("its ", name, " is ", Fields::Shown(activation), "; supported are gelu, gelu_new, gelu_fast, ",
                       "gelu_pytorch_tanh and relu");
}

// BERT's name for what DistilBERT calls otherwise, within a layer.
constexpr std::pair<std::string_view, std::string_view> kDistilBertNames[] = {
    {"attention.q_lin.", "attention.self.query."},
    {"attention.k_lin.", "attention.self.key."},
    {"attention.v_lin.", "attention.self.value."},
    {"attention.out_lin.", "attention.output.dense."},
    {"sa_layer_norm.", "attention.output.LayerNorm."},
    {"ffn.lin1.", "intermediate.dense."},
    {"ffn.lin2.", "output.dense."},
    {"output_layer_norm.", "output.LayerNorm."},
};

std::string FromDistilBert(const std::string& name) {
  constexpr std::string_view kLayers = "transformer.layer.";
  if (!name.starts_with(kLayers)) return name;
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string::npos) return name;
  std::string layer = "encoder.layer." + name.substr(kLayers.size(), dot + 1 - kLayers.size());
  const std::string rest = name.substr(dot + 1);
  for (const auto& [theirs, ours] : kDistilBertNames) {
    if (rest.starts_with(theirs)) return layer + std::string(ours) + rest.substr(theirs.size());
  }
  return layer + rest;
}

// Replaces the end of `name`, if it is `from`.
void ReplaceEnding(std::string& name, std::string_view from, std::string_view to) {
  if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
}

}  // namespace

StatusOr<BertConfig> ParseBertConfig(std::string_view config) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json json, ParseStrictJson(config));
  const Fields fields(json);
  BertConfig bert;
  SWIZZLE_ASSIGN_OR_RETURN(bert.family, ReadFamily(fields));
  const bool distil = bert.family == BertFamily::kDistilBert;
  const char* const heads = distil ? "n_heads" : "num_attention_heads";
  SWIZZLE_ASSIGN_OR_RETURN(bert.hidden_size, fields.Whole(distil ? "dim" : "hidden_size", kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.num_attention_heads, fields.Whole(heads, kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.num_hidden_layers, fields.Whole(distil ? "n_layers" : "num_hidden_layers", kMaxLayers));
  SWIZZLE_ASSIGN_OR_RETURN(bert.max_position_embeddings, fields.Whole("max_position_embeddings", kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.activation, ReadActivation(fields, distil ? "activation" : "hidden_act"));
  bert.layer_norm_eps = 1e-12f;  // DistilBERT's, which has no field for it
  if (!distil) {
    SWIZZLE_ASSIGN_OR_RETURN(bert.layer_norm_eps, fields.Epsilon("layer_norm_eps"));
  }
  if (bert.family == BertFamily::kRoberta) {
    SWIZZLE_ASSIGN_OR_RETURN(bert.pad_token_id, fields.Whole("pad_token_id", bert.max_position_embeddings - 2, 0));
  }
  if (bert.hidden_size % bert.num_attention_heads != 0) {
    return InvalidArgument("its hidden size ", bert.hidden_size, " is no multiple of its ", heads, ", ",
                           bert.num_attention_heads);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string positions, fields.Text("position_embedding_type", "absolute"));
  if (positions != "absolute") {
    return Unimplemented("its position_embedding_type is ", Fields::Shown(positions), "; only absolute is supported");
  }
  for (const char* flag : {"is_decoder", "add_cross_attention", "is_encoder_decoder"}) {
    SWIZZLE_RETURN_IF_ERROR(fields.RefuseTrue(flag));
  }
  return bert;
}

std::string CanonicalName(BertFamily family, const std::string& name) {
  std::string canonical = name;
  for (const std::string prefix : {"model.", "bert.", "roberta.", "distilbert."}) {
    if (canonical.starts_with(prefix)) canonical.erase(0, prefix.size());
  }
  if (family == BertFamily::kDistilBert) canonical = FromDistilBert(canonical);
  ReplaceEnding(canonical, "LayerNorm.gamma", "LayerNorm.weight");
  ReplaceEnding(canonical, "LayerNorm.beta", "LayerNorm.bias");
  if (canonical == "embeddings.position_ids" || canonical == "embeddings.token_type_ids") return "";
  for (const std::string part : {"embeddings.", "encoder.", "pooler."}) {
    if (canonical.starts_with(part)) return canonical;
  }
  return "";
}

}  // namespace swizzle
