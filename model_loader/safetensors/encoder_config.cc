#include "model_loader/safetensors/encoder_config.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/safetensors/config_fields.h"
#include "model_loader/safetensors/strict_json.h"

namespace swizzle {
namespace {

using Reader = StatusOr<EncoderConfig> (*)(const ConfigFields& fields, std::string_view type);

template <auto kRead>
StatusOr<EncoderConfig> As(const ConfigFields& fields, std::string_view type) {
  SWIZZLE_ASSIGN_OR_RETURN(auto config, kRead(fields, type));
  return EncoderConfig(std::move(config));
}

// A kind of model, as config.json names it.
struct Kind {
  std::string_view type;        // model_type
  std::string_view class_name;  // what architectures begin with, before "Model" and "For..."
  Reader read;
};
constexpr auto kKinds = std::to_array<Kind>({
    {"bert", "Bert", As<ReadBertConfig>},
    {"roberta", "Roberta", As<ReadBertConfig>},
    {"xlm-roberta", "XLMRoberta", As<ReadBertConfig>},
    {"camembert", "Camembert", As<ReadBertConfig>},
    {"distilbert", "DistilBert", As<ReadBertConfig>},
    {"mpnet", "MPNet", As<ReadBertConfig>},
    {"electra", "Electra", As<ReadBertConfig>},
    {"deberta-v2", "DebertaV2", As<ReadDebertaConfig>},
    {"modernbert", "ModernBert", As<ReadModernBertConfig>},
    {"nomic_bert", "NomicBert", As<ReadNomicBertConfig>},
    {"qwen2", "Qwen2", As<ReadQwenConfig>},
    {"qwen3", "Qwen3", As<ReadQwenConfig>},
});

const Kind* KindOfType(std::string_view type) {
  const auto found = std::ranges::find(kKinds, type, &Kind::type);
  return found == kKinds.end() ? nullptr : &*found;
}

// "RobertaForMaskedLM" is RoBERTa's, "BertGenerationEncoder" is not BERT's.
const Kind* KindOfClass(std::string_view architecture) {
  for (const Kind& kind : kKinds) {
    if (!architecture.starts_with(kind.class_name)) continue;
    const std::string_view rest = architecture.substr(kind.class_name.size());
    if (rest.starts_with("Model") || rest.starts_with("For") || rest.starts_with("LMHead")) return &kind;
  }
  return nullptr;
}

// `type_of_tensors` counts where config.json says nothing, as that of the first BERTs does.
StatusOr<const Kind*> ReadKind(const ConfigFields& fields, std::string_view type_of_tensors) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string type, fields.Text("model_type", ""));
  const std::vector<std::string> architectures = fields.Texts("architectures");
  const Kind* kind = nullptr;
  std::string said;
  if (!type.empty()) {
    kind = KindOfType(type);
    said = Concat("model_type is ", ConfigFields::Shown(type));
  } else if (!architectures.empty()) {
    kind = KindOfClass(architectures[0]);
    said = Concat("architecture is ", ConfigFields::Shown(architectures[0]));
  } else {
    kind = KindOfType(type_of_tensors);
    if (kind == nullptr) {
      return InvalidArgument(
          "it lacks the field model_type, and neither architectures nor the names of tensors tell: "
          "add \"model_type\": \"bert\", or what else it is");
    }
  }
  if (kind != nullptr) return kind;
  std::string types;
  for (const Kind& known : kKinds) types += Concat(types.empty() ? "" : ", ", known.type);
  return Unimplemented("its ", said, "; supported are ", types, ": export the model to ONNX");
}

}  // namespace

StatusOr<EncoderConfig> ParseEncoderConfig(std::string_view config, std::string_view type_of_tensors) {
  SWIZZLE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseStrictJson(config));
  const ConfigFields fields(json);
  SWIZZLE_ASSIGN_OR_RETURN(const Kind* const kind, ReadKind(fields, type_of_tensors));
  return kind->read(fields, kind->type);
}

}  // namespace swizzle
