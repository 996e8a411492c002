#include "model_loader/safetensors/deberta_config.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace swizzle {
namespace {

// The parts of a text that '|' stands between, in small letters and without spaces around, as transformers reads them.
std::vector<std::string> PartsOf(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '|') {
      parts.emplace_back();
    } else if (c != ' ' && c != '\t' && c != '\n') {  // no name that is looked for has any within
      parts.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return parts;
}

bool Has(const std::vector<std::string>& parts, std::string_view part) {
  return std::ranges::find(parts, part) != parts.end();
}

Status ReadPlaces(const ConfigFields& fields, DebertaConfig& config) {
  constexpr int64_t kMostPlaces = 1 << 13;
  SWIZZLE_ASSIGN_OR_RETURN(const bool relative, fields.Flag("relative_attention", false));
  if (!relative) return Unimplemented("its relative_attention is false; only true is supported: export it to ONNX");
  SWIZZLE_ASSIGN_OR_RETURN(const bool absolute, fields.Flag("position_biased_input", true));
  if (absolute) return Unimplemented("its position_biased_input is true; only false is supported: export it to ONNX");
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t positions,
                           fields.Whole({"max_position_embeddings"}, 512, {ConfigFields::kMaxExtent}));
  SWIZZLE_ASSIGN_OR_RETURN(config.farthest, fields.Whole({"max_relative_positions"}, -1, {kMostPlaces, -1}));
  if (config.farthest < 1) config.farthest = std::min(positions, kMostPlaces);
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t buckets, fields.Whole({"position_buckets"}, -1, {kMostPlaces, -1}));
  config.in_buckets = buckets > 0;
  config.span = config.in_buckets ? buckets : config.farthest;
  std::vector<std::string> types = fields.Texts("pos_att_type");
  if (types.empty() && !fields.IsList("pos_att_type")) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::string text, fields.Text("pos_att_type", ""));
    types = PartsOf(text);
  }
  config.of_queries = Has(types, "c2p");
  config.of_keys = Has(types, "p2c");
  SWIZZLE_ASSIGN_OR_RETURN(config.shares_projections, fields.Flag("share_att_key", false));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string norms, fields.Text("norm_rel_ebd", "none"));
  config.norms_places = Has(PartsOf(norms), "layer_norm");
  return {};
}

}  // namespace

StatusOr<DebertaConfig> ReadDebertaConfig(const ConfigFields& fields, std::string_view /*type*/) {
  constexpr int64_t kMaxExtent = ConfigFields::kMaxExtent;
  DebertaConfig config;
  SWIZZLE_ASSIGN_OR_RETURN(config.hidden_size, fields.Whole({"hidden_size"}, 1536, {kMaxExtent}));
  SWIZZLE_ASSIGN_OR_RETURN(config.embedding_size, fields.Whole({"embedding_size"}, config.hidden_size, {kMaxExtent}));
  SWIZZLE_ASSIGN_OR_RETURN(config.num_attention_heads, fields.Whole({"num_attention_heads"}, 24, {kMaxExtent}));
  if (config.hidden_size % config.num_attention_heads != 0) {
    return InvalidArgument("its hidden size ", config.hidden_size, " is no multiple of its num_attention_heads, ",
                           config.num_attention_heads);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t size, fields.Whole({"attention_head_size"}, config.head_size(), {kMaxExtent}));
  if (size != config.head_size()) {
    return Unimplemented("its attention_head_size is ", size, "; only ", config.head_size(),
                         ", of which num_attention_heads make hidden_size, is supported: export it to ONNX");
  }
  SWIZZLE_ASSIGN_OR_RETURN(config.num_hidden_layers,
                           fields.Whole({"num_hidden_layers"}, 24, {ConfigFields::kMaxLayers}));
  SWIZZLE_RETURN_IF_ERROR(ReadPlaces(fields, config));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t window, fields.Whole({"conv_kernel_size"}, 0, {kMaxExtent, 0}));
  if (window > 0) return Unimplemented("its conv_kernel_size is ", window, "; only 0 is supported: export it to ONNX");
  SWIZZLE_ASSIGN_OR_RETURN(config.activation, ReadActivation(fields, "hidden_act"));
  SWIZZLE_ASSIGN_OR_RETURN(config.layer_norm_eps, fields.Epsilon("layer_norm_eps", 1e-7f));
  config.classifies = fields.Classifies();
  SWIZZLE_ASSIGN_OR_RETURN(config.pooler_activation, ReadActivation(fields, "pooler_hidden_act"));
  return config;
}

}  // namespace swizzle
