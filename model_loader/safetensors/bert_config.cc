#include "model_loader/safetensors/bert_config.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

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

  // The first of the names that is there; then a number from `least` to `most`.
  struct Range {
    int64_t most, least = 1;
  };
  StatusOr<int64_t> Whole(std::initializer_list<const char*> names, int64_t absent, Range range) const {
    const auto name = std::ranges::find_if(names, [&](const char* given) { return Has(given); });
    return name == names.end() ? absent : WholeOf(*name, range);
  }

  StatusOr<int64_t> WholeOf(const char* name, Range range) const {
    const Json& value = json_[name];
    if (value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= kMaxExtent)) {
      const int64_t whole = value.get<int64_t>();
      if (whole >= range.least && whole <= range.most) return whole;
    }
    return InvalidArgument("its ", name, " is ", Shown(value), "; it must be a whole number from ", range.least, " to ",
                           range.most);
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

  StatusOr<float> Epsilon(const char* name, float absent) const {
    if (!Has(name)) return absent;
    const double value = json_[name].is_number() ? json_[name].get<double>() : -1.0;
    if (value > 0.0 && value < 1.0) return static_cast<float>(value);
    return InvalidArgument("its ", name, " is ", Shown(json_[name]), "; it must be a number between 0 and 1");
  }

  // The strings of a list; none if it is no list of strings.
  std::vector<std::string> Texts(const char* name) const {
    std::vector<std::string> texts;
    if (!Has(name) || !json_[name].is_array()) return texts;
    for (const Json& text : json_[name]) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
    return texts;
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

// A kind of model: how config.json names it, and what transformers takes for fields that are left out.
struct Kind {
  std::string_view type;        // model_type
  std::string_view class_name;  // what architectures begin with, before "Model" and "For..."
  BertFamily family;
  BertClassifier classifier;
  int64_t hidden_size = 768, heads = 12, layers = 12;
  int64_t pad_token_id = 0;
  int64_t embedding_size = 0;  // 0: hidden_size, and no field tells another
};
constexpr auto kKinds = std::to_array<Kind>({
    {.type = "bert", .class_name = "Bert", .family = BertFamily::kBert, .classifier = BertClassifier::kPooler},
    {.type = "roberta",
     .class_name = "Roberta",
     .family = BertFamily::kRoberta,
     .classifier = BertClassifier::kTanh,
     .pad_token_id = 1},
    {.type = "xlm-roberta",
     .class_name = "XLMRoberta",
     .family = BertFamily::kRoberta,
     .classifier = BertClassifier::kTanh,
     .pad_token_id = 1},
    {.type = "camembert",
     .class_name = "Camembert",
     .family = BertFamily::kRoberta,
     .classifier = BertClassifier::kTanh,
     .pad_token_id = 1},
    {.type = "distilbert",
     .class_name = "DistilBert",
     .family = BertFamily::kDistilBert,
     .classifier = BertClassifier::kRelu,
     .layers = 6},
    {.type = "mpnet",
     .class_name = "MPNet",
     .family = BertFamily::kMpnet,
     .classifier = BertClassifier::kTanh,
     .pad_token_id = 1},
    {.type = "electra",
     .class_name = "Electra",
     .family = BertFamily::kBert,
     .classifier = BertClassifier::kGelu,
     .hidden_size = 256,
     .heads = 4,
     .embedding_size = 128},
});
constexpr int64_t kPositions = 512;
constexpr float kLayerNormEps = 1e-12f;

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
StatusOr<const Kind*> ReadKind(const Fields& fields, std::string_view type_of_tensors) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string type, fields.Text("model_type", ""));
  const std::vector<std::string> architectures = fields.Texts("architectures");
  const Kind* kind = nullptr;
  std::string said;
  if (!type.empty()) {
    kind = KindOfType(type);
    said = Concat("model_type is ", Fields::Shown(type));
  } else if (!architectures.empty()) {
    kind = KindOfClass(architectures[0]);
    said = Concat("architecture is ", Fields::Shown(architectures[0]));
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

bool Classifies(const Fields& fields) {
  const std::vector<std::string> architectures = fields.Texts("architectures");
  return !architectures.empty() && architectures[0].ends_with("ForSequenceClassification");
}

// By the names that transformers knows, all of them but those that have weights of their own.
constexpr auto kActivations = std::to_array<std::pair<std::string_view, BertActivation>>({
    {"gelu", BertActivation::kGelu},
    {"gelu_python", BertActivation::kGelu},
    {"gelu_new", BertActivation::kGeluTanh},
    {"gelu_fast", BertActivation::kGeluTanh},
    {"gelu_accurate", BertActivation::kGeluTanh},
    {"gelu_pytorch_tanh", BertActivation::kGeluTanh},
    {"gelu_python_tanh", BertActivation::kGeluTanh},
    {"gelu_10", BertActivation::kGelu10},
    {"quick_gelu", BertActivation::kQuickGelu},
    {"silu", BertActivation::kSilu},
    {"swish", BertActivation::kSilu},
    {"mish", BertActivation::kMish},
    {"relu", BertActivation::kRelu},
    {"relu2", BertActivation::kRelu2},
    {"relu6", BertActivation::kRelu6},
    {"leaky_relu", BertActivation::kLeakyRelu},
    {"tanh", BertActivation::kTanh},
    {"sigmoid", BertActivation::kSigmoid},
    {"linear", BertActivation::kLinear},
});

StatusOr<BertActivation> ReadActivation(const Fields& fields, const char* name) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string activation, fields.Text(name, "gelu"));
  std::string known;
  for (const auto& [its, value] : kActivations) {
    if (its == activation) return value;
    known += Concat(known.empty() ? "" : ", ", its);
  }
  return Unimplemented("its ", name, " is ", Fields::Shown(activation), "; supported are ", known);
}

}  // namespace

StatusOr<BertConfig> ParseBertConfig(std::string_view config, std::string_view type_of_tensors) {
  SWIZZLE_ASSIGN_OR_RETURN(const Json json, ParseStrictJson(config));
  const Fields fields(json);
  BertConfig bert;
  SWIZZLE_ASSIGN_OR_RETURN(const Kind* const kind, ReadKind(fields, type_of_tensors));
  bert.family = kind->family;
  if (Classifies(fields)) bert.classifier = kind->classifier;
  const bool distil = bert.family == BertFamily::kDistilBert;
  const char* const heads = distil && fields.Has("n_heads") ? "n_heads" : "num_attention_heads";
  const auto whole = [&](const char* name, const char* of_distil, int64_t absent, int64_t most) {
    return distil ? fields.Whole({of_distil, name}, absent, {most}) : fields.Whole({name}, absent, {most});
  };
  SWIZZLE_ASSIGN_OR_RETURN(bert.hidden_size, whole("hidden_size", "dim", kind->hidden_size, kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.num_attention_heads, whole("num_attention_heads", "n_heads", kind->heads, kMaxExtent));
  SWIZZLE_ASSIGN_OR_RETURN(bert.num_hidden_layers, whole("num_hidden_layers", "n_layers", kind->layers, kMaxLayers));
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
    return Unimplemented("its position_embedding_type is ", Fields::Shown(positions), "; only absolute is supported");
  }
  for (const char* flag : {"is_decoder", "add_cross_attention", "is_encoder_decoder"}) {
    SWIZZLE_RETURN_IF_ERROR(fields.RefuseTrue(flag));
  }
  return bert;
}

}  // namespace swizzle
