#include "model_loader/safetensors/bert_config.h"

#include <algorithm>
#include <array>
#include <string>

#include "model_loader/safetensors/config_fields.h"

namespace swizzle {
namespace {

// What transformers takes for fields that are left out, by model_type.
struct Kind {
  std::string_view type;
  BertFamily family;
  BertClassifier classifier;
  int64_t hidden_size = 768, heads = 12, layers = 12;
  int64_t pad_token_id = 0;
  int64_t embedding_size = 0;  // 0: hidden_size, and no field tells another
};
constexpr auto kKinds = std::to_array<Kind>({
    {.type = "bert", .family = BertFamily::kBert, .classifier = BertClassifier::kPooler},
    {.type = "roberta", .family = BertFamily::kRoberta, .classifier = BertClassifier::kTanh, .pad_token_id = 1},
    {.type = "xlm-roberta", .family = BertFamily::kRoberta, .classifier = BertClassifier::kTanh, .pad_token_id = 1},
    {.type = "camembert", .family = BertFamily::kRoberta, .classifier = BertClassifier::kTanh, .pad_token_id = 1},
    {.type = "distilbert", .family = BertFamily::kDistilBert, .classifier = BertClassifier::kRelu, .layers = 6},
    {.type = "mpnet", .family = BertFamily::kMpnet, .classifier = BertClassifier::kTanh, .pad_token_id = 1},
    {.type = "electra",
     .family = BertFamily::kBert,
     .classifier = BertClassifier::kGelu,
     .hidden_size = 256,
     .heads = 4,
     .embedding_size = 128},
});
constexpr int64_t kPositions = 512;
constexpr float kLayerNormEps = 1e-12f;

}  // namespace

StatusOr<BertConfig> ReadBertConfig(const ConfigFields& fields, std::string_view type) {
  BertConfig bert;
  const auto kind = std::ranges::find(kKinds, type, &Kind::type);
  SWIZZLE_CHECK(kind != kKinds.end());
  bert.family = kind->family;
  if (fields.Classifies()) bert.classifier = kind->classifier;
  const bool distil = bert.family == BertFamily::kDistilBert;
  const char* const heads = distil && fields.Has("n_heads") ? "n_heads" : "num_attention_heads";
  constexpr int64_t kMaxExtent = ConfigFields::kMaxExtent;
  const auto whole = [&](const char* name, const char* of_distil, int64_t absent, int64_t most) {
    return distil ? fields.Whole({of_distil, name}, absent, {most}) : fields.Whole({name}, absent, {most});
  };
  SWIZZLE_ASSIGN_OR_RETURN(bert.hidden_size, whole("hidden_size", "dim", kind->hidden_size, kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.num_attention_heads, whole("num_attention_heads", "n_heads", kind->heads, kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.num_hidden_layers,
                           whole("num_hidden_layers", "n_layers", kind->layers, ConfigFields::kMaxLayers));
  SWIZZLE_ASSIGN_OR_RETURN(bert.max_position_embeddings,
                           fields.Whole({"max_position_embeddings"}, kPositions, {kMaxExtent}));
  bert.embedding_size = bert.hidden_size;
  if (kind->embedding_size > 0) {
    SWIZZLE_ASSIGN_OR_RETURN(bert.embedding_size, fields.Whole({"embedding_size"}, kind->embedding_size, {kMaxExtent}));
  }
  SWIZZLE_ASSIGN_OR_RETURN(bert.activation,
                           ReadActivation(fields, distil && fields.Has("activation") ? "activation" : "hidden_act"));
  bert.layer_norm_eps = kLayerNormEps;
  if (!distil) {  // which has no field for it
    SWIZZLE_ASSIGN_OR_RETURN(bert.layer_norm_eps, fields.Epsilon("layer_norm_eps", kLayerNormEps));
  }
  if (bert.family == BertFamily::kRoberta) {
    SWIZZLE_ASSIGN_OR_RETURN(bert.pad_token_id,
                             fields.Whole({"pad_token_id"}, kind->pad_token_id, {bert.max_position_embeddings - 2, 0}));
  }
  // Whatever the field says: transformers does not read it.
  if (bert.family == BertFamily::kMpnet) bert.pad_token_id = kind->pad_token_id;
  if (bert.hidden_size % bert.num_attention_heads != 0) {
    return InvalidArgument("its hidden size ", bert.hidden_size, " is no multiple of its ", heads, ", ",
                           bert.num_attention_heads);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const std::string positions, fields.Text("position_embedding_type", "absolute"));
  if (positions != "absolute") {
    return Unimplemented("its position_embedding_type is ", ConfigFields::Shown(positions),
                         "; only absolute is supported");
  }
  for (const char* flag : {"is_decoder", "add_cross_attention", "is_encoder_decoder"}) {
    SWIZZLE_RETURN_IF_ERROR(fields.RefuseTrue(flag));
  }
  return bert;
}

}  // namespace swizzle
