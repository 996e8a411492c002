#include "model_loader/safetensors/tensor_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <variant>

namespace swizzle {
namespace {

// The tables of words of all families. Where a checkpoint has several, the first of them counts.
constexpr std::string_view kWords[] = {"embeddings.word_embeddings.weight", "embeddings.tok_embeddings.weight",
                                       "embed_tokens.weight"};
constexpr std::string_view kLayers = "encoder.layer.";
constexpr std::string_view kDistilBertLayers = "transformer.layer.";

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

// Likewise what MPNet does.
constexpr std::pair<std::string_view, std::string_view> kMpnetNames[] = {
    {"attention.attn.q.", "attention.self.query."},          {"attention.attn.k.", "attention.self.key."},
    {"attention.attn.v.", "attention.self.value."},          {"attention.attn.o.", "attention.output.dense."},
    {"attention.LayerNorm.", "attention.output.LayerNorm."},
};

// BERT's name for what a family that begins its layers with `layers` calls otherwise.
std::string FromOther(const std::string& name, std::string_view layers,
                      std::span<const std::pair<std::string_view, std::string_view>> names) {
  if (!name.starts_with(layers)) return name;
  const size_t dot = name.find('.', layers.size());
  if (dot == std::string::npos) return name;
  std::string layer = std::string(kLayers) + name.substr(layers.size(), dot + 1 - layers.size());
  const std::string rest = name.substr(dot + 1);
  for (const auto& [theirs, ours] : names) {
    if (rest.starts_with(theirs)) return layer + std::string(ours) + rest.substr(theirs.size());
  }
  return layer + rest;
}

// Replaces the end of `name`, if it is `from`.
void ReplaceEnding(std::string& name, std::string_view from, std::string_view to) {
  if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
}

// What wraps both an encoder and its head: "module." of "module.bert.".
std::string_view WrapperOf(std::string_view prefix) {
  if (prefix.ends_with('.')) prefix.remove_suffix(1);
  return prefix.substr(0, prefix.rfind('.') + 1);
}

// What stands before this name, if it is there.
StatusOr<std::optional<std::string>> PrefixOf(std::string_view words, const TensorMap& tensors) {
  std::optional<std::string> prefix;
  for (const auto& [name, tensor] : tensors) {
    if (!name.ends_with(words)) continue;
    std::string found = name.substr(0, name.size() - words.size());
    if (!found.empty() && found.back() != '.') continue;
    if (prefix) {
      return InvalidArgument("the checkpoint has two encoders, of which the tensors begin with '", *prefix, "' and '",
                             found, "'; keep one");
    }
    prefix = std::move(found);
  }
  return prefix;
}

std::string NameIn(const BertConfig& config, std::string_view prefix, std::string_view name) {
  std::string canonical = CanonicalName(config.family, prefix, name);
  if (!canonical.empty() || config.classifier == BertClassifier::kNone) return canonical;
  return ClassifierName(prefix, name);
}

// What of `name` follows `prefix`, if one of the parts begins it.
std::string NameAfter(std::string_view prefix, std::string_view name, std::span<const std::string_view> parts) {
  if (!name.starts_with(prefix)) return "";
  name.remove_prefix(prefix.size());
  const bool is_its = std::ranges::any_of(parts, [&](std::string_view part) { return name.starts_with(part); });
  return is_its ? std::string(name) : "";
}

std::string NameIn(const DebertaConfig& config, std::string_view prefix, std::string_view name) {
  constexpr std::string_view kEncoder[] = {"embeddings.LayerNorm.", "embeddings.embed_proj.",
                                           "embeddings.token_type_embeddings.", "embeddings.word_embeddings.",
                                           "encoder."};
  constexpr std::string_view kClassifier[] = {"pooler.", "classifier."};
  std::string within = NameAfter(prefix, name, kEncoder);
  if (!within.empty() || !config.classifies) return within;
  return NameAfter(WrapperOf(prefix), name, kClassifier);
}

std::string NameIn(const ModernBertConfig& config, std::string_view prefix, std::string_view name) {
  constexpr std::string_view kEncoder[] = {"embeddings.", "layers.", "final_norm."};
  constexpr std::string_view kClassifier[] = {"head.", "classifier."};
  std::string within = NameAfter(prefix, name, kEncoder);
  if (!within.empty() || !config.classifies) return within;
  return NameAfter(WrapperOf(prefix), name, kClassifier);
}

std::string NameIn(const NomicBertConfig& config, std::string_view prefix, std::string_view name) {
  constexpr std::string_view kEncoder[] = {"embeddings.", "emb_ln.", "encoder.", "pooler."};
  std::string within = NameAfter(prefix, name, kEncoder);
  return within.empty() && config.classifies ? ClassifierName(prefix, name) : within;
}

std::string NameIn(const QwenConfig& /*config*/, std::string_view prefix, std::string_view name) {
  constexpr std::string_view kEncoder[] = {"embed_tokens.", "layers.", "norm."};
  return NameAfter(prefix, name, kEncoder);
}

}  // namespace

StatusOr<std::string> EncoderPrefix(const TensorMap& tensors) {
  for (const std::string_view words : kWords) {
    SWIZZLE_ASSIGN_OR_RETURN(const auto prefix, PrefixOf(words, tensors));
    if (prefix) return *prefix;
  }
  return "";
}

std::string TypeByNames(const TensorMap& tensors, std::string_view prefix) {
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix) && name.substr(prefix.size()).starts_with(kDistilBertLayers)) return "distilbert";
  }
  // Whole words: "distilbert." ends in "bert.", too.
  for (const std::string_view type : {"bert", "roberta", "electra", "mpnet"}) {
    const std::string end = std::string(type) + ".";
    if (prefix == end || prefix.ends_with("." + end)) return std::string(type);
  }
  return "";
}

std::string CanonicalName(BertFamily family, std::string_view prefix, std::string_view name) {
  const bool is_within = name.starts_with(prefix);
  std::string canonical(is_within ? name.substr(prefix.size()) : name);
  if (family == BertFamily::kDistilBert) canonical = FromOther(canonical, kDistilBertLayers, kDistilBertNames);
  if (family == BertFamily::kMpnet) canonical = FromOther(canonical, kLayers, kMpnetNames);
  ReplaceEnding(canonical, "LayerNorm.gamma", "LayerNorm.weight");
  ReplaceEnding(canonical, "LayerNorm.beta", "LayerNorm.bias");
  if (canonical == "embeddings.position_ids" || canonical == "embeddings.token_type_ids") return "";
  for (const std::string_view part : {"embeddings.", "embeddings_project.", "encoder.layer."}) {
    if (canonical.starts_with(part)) return canonical;
  }
  // Beside a wrapped encoder these may be a task's.
  const bool is_other = canonical.starts_with("encoder.") || canonical.starts_with("pooler.");
  return is_within && is_other ? canonical : "";
}

std::string ClassifierName(std::string_view prefix, std::string_view name) {
  constexpr std::string_view kParts[] = {"classifier.", "pre_classifier."};
  return NameAfter(WrapperOf(prefix), name, kParts);
}

std::string TensorName(const EncoderConfig& config, std::string_view prefix, std::string_view name) {
  return std::visit([&](const auto& family) { return NameIn(family, prefix, name); }, config);
}

}  // namespace swizzle
