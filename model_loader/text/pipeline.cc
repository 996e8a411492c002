#include "model_loader/text/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model_loader/files/printable_name.h"
#include "model_loader/safetensors/strict_json.h"

namespace swizzle::text {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = int64_t{1} << 20;
constexpr std::string_view kModules = "modules.json", kSettings = "sentence_bert_config.json";
constexpr std::string_view kConfig = "config.json", kPrompts = "config_sentence_transformers.json";

bool HasFile(const ModelFolder& folder, std::string_view location) {
  std::error_code ignored;
  return std::filesystem::exists(folder.path / location, ignored);
}

StatusOr<std::string> TextOf(const ModelFolder& folder, const std::string& location) {
  return ContainedFile::Read(folder, location, "the file", kMostBytes);
}

StatusOr<Json> ObjectIn(const ModelFolder& folder, const std::string& location) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text, TextOf(folder, location));
  StatusOr<Json> object = ParseStrictJson(text);
  if (!object.ok()) return Annotate(object.status(), location);
  return object;
}

bool IsTrue(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

// One of the modes is set; there are exports that leave the list out, and mean the mean. Newer ones name the mode.
StatusOr<Pooling> PoolingOf(const Json& object, const std::string& location) {
  if (const auto mode = object.find("pooling_mode"); mode != object.end() && !mode->is_null()) {
    if (*mode == "mean") return Pooling::kMean;
    if (*mode == "cls") return Pooling::kFirst;
    if (*mode == "lasttoken") return Pooling::kLast;
    return Unimplemented(location, ": its pooling_mode is ", QuotedName(mode->dump()),
                         "; supported are mean, cls and lasttoken");
  }
  std::vector<std::string> modes;
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with("pooling_mode_") && value.is_boolean() && value.get<bool>()) modes.push_back(key);
  }
  if (modes.empty() || modes == std::vector<std::string>{"pooling_mode_mean_tokens"}) return Pooling::kMean;
  if (modes == std::vector<std::string>{"pooling_mode_cls_token"}) return Pooling::kFirst;
  if (modes == std::vector<std::string>{"pooling_mode_lasttoken"}) return Pooling::kLast;
  std::string all;
  for (const std::string& mode : modes) all += Concat(all.empty() ? "" : " and ", mode);
  return Unimplemented(location, ": ", all, " is not supported; one of pooling_mode_mean_tokens, ",
                       "pooling_mode_cls_token and pooling_mode_lasttoken is");
}

struct Module {
  std::string type, path;
};

// modules.json is a list, which strict_json.h does not take by itself.
StatusOr<std::vector<Module>> ModulesIn(const ModelFolder& folder) {
  const std::string location(kModules);
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text, TextOf(folder, location));
  StatusOr<Json> wrapped = ParseStrictJson(Concat("{\"modules\":", text, "}"));
  if (!wrapped.ok()) return Annotate(wrapped.status(), location);
  const Json& list = (*wrapped)["modules"];
  std::vector<Module> modules;
  for (const Json& each : list.is_array() ? list : Json::array({Json()})) {
    const bool fits = each.is_object() && each.contains("type") && each["type"].is_string() &&
                      (!each.contains("path") || each["path"].is_string());
    if (!fits) return InvalidArgument(location, ": it is no list of modules, each with its type and its path");
    modules.push_back({each["type"].get<std::string>(), each.value("path", std::string())});
  }
  return modules;
}

Status TakeModule(const ModelFolder& folder, const Module& module, Pipeline& pipeline, bool& pools_prompts) {
  const std::string kind = module.type.substr(module.type.rfind('.') + 1);
  if (kind == "Transformer") return absl::OkStatus();
  if (kind == "Normalize") {
    pipeline.normalises = true;
    return absl::OkStatus();
  }
  if (kind == "Dense") {
    if (pipeline.normalises) return Unimplemented(kModules, ": a Dense module behind Normalize is not supported");
    SWIZZLE_ASSIGN_OR_RETURN(DenseLayer layer, ReadDense(folder, module.path));
    pipeline.dense.push_back(std::make_shared<const DenseLayer>(std::move(layer)));
    return absl::OkStatus();
  }
  if (kind != "Pooling") {
    return Unimplemented(kModules, ": module ", module.type,
                         " is not supported; Transformer, Pooling, Dense and Normalize are");
  }
  if (!pipeline.dense.empty()) return Unimplemented(kModules, ": a Dense module before Pooling is not supported");
  const std::string location = (std::filesystem::path(module.path) / "config.json").string();
  SWIZZLE_ASSIGN_OR_RETURN(const Json object, ObjectIn(folder, location));
  SWIZZLE_ASSIGN_OR_RETURN(pipeline.pooling, PoolingOf(object, location));
  pools_prompts = !object.contains("include_prompt") || IsTrue(object, "include_prompt");
  return absl::OkStatus();
}

// {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
Status TakePrompts(const ModelFolder& folder, bool pools_prompts, Pipeline& pipeline) {
  const std::string location(kPrompts);
  SWIZZLE_ASSIGN_OR_RETURN(const Json object, ObjectIn(folder, location));
  if (const auto prompts = object.find("prompts"); prompts != object.end() && !prompts->is_null()) {
    if (!prompts->is_object()) return InvalidArgument(location, ": its prompts are no object");
    for (const auto& [name, prompt] : prompts->items()) {
      if (!prompt.is_string()) return InvalidArgument(location, ": its prompt ", QuotedName(name), " is no string");
      if (!pools_prompts && !prompt.get_ref<const std::string&>().empty()) {
        return Unimplemented(location, ": prompts whose tokens are left out of pooling (include_prompt is false) are ",
                             "not supported");
      }
      pipeline.prompts[name] = prompt.get<std::string>();
    }
  }
  const auto name = object.find("default_prompt_name");
  if (name == object.end() || name->is_null()) return absl::OkStatus();
  const auto found = name->is_string() ? pipeline.prompts.find(name->get<std::string>()) : pipeline.prompts.end();
  if (found == pipeline.prompts.end()) {
    return InvalidArgument(location, ": its default_prompt_name is ", QuotedName(name->dump()),
                           ", and prompts have none of that name");
  }
  pipeline.default_prompt = found->second;
  return absl::OkStatus();
}

Status TakeSettings(const ModelFolder& folder, Pipeline& pipeline) {
  const std::string location(kSettings);
  SWIZZLE_ASSIGN_OR_RETURN(const Json object, ObjectIn(folder, location));
  if (const auto length = object.find("max_seq_length"); length != object.end() && !length->is_null()) {
    if (!length->is_number_integer() || *length < 1) {
      return InvalidArgument(location, ": max_seq_length is no whole number from 1 on");
    }
    pipeline.max_tokens = length->get<int64_t>();
  }
  if (!IsTrue(object, "do_lower_case")) return absl::OkStatus();
  return Unimplemented(location, ": do_lower_case is not supported; have the tokeniser's own files say it");
}

// {"0": "no", "1": "yes"}, whose keys are all the numbers up to the largest.
StatusOr<std::vector<std::string>> LabelsIn(const Json& config) {
  const auto found = config.find("id2label");
  if (found == config.end() || found->is_null()) return std::vector<std::string>();
  std::vector<std::string> labels;
  const auto wrong = [](const std::string& why) { return InvalidArgument(kConfig, ": its id2label ", why); };
  if (!found->is_object()) return wrong("is no object");
  for (size_t i = 0; i < found->size(); ++i) {
    const auto label = found->find(std::to_string(i));
    if (label == found->end()) return wrong(Concat("has ", found->size(), " labels, and none of the id ", i));
    if (!label->is_string()) return wrong(Concat("has a label ", i, " that is no string"));
    labels.push_back(label->get<std::string>());
  }
  return labels;
}

Status TakeLabels(const Json& config, Pipeline& pipeline) {
  SWIZZLE_ASSIGN_OR_RETURN(pipeline.labels, LabelsIn(config));
  const auto problem = config.find("problem_type");
  if (problem == config.end() || problem->is_null() || *problem == "single_label_classification") return {};
  if (*problem == "multi_label_classification") {
    pipeline.of_many = ScoreFunction::kSigmoid;
  } else if (*problem == "regression") {
    pipeline.of_many = ScoreFunction::kNone;
  } else {
    return Unimplemented(kConfig, ": its problem_type is ", QuotedName(problem->dump()), "; supported are ",
                         "single_label_classification, multi_label_classification and regression");
  }
  return {};
}

// Encoders that count positions from behind the padding's id on have as many fewer.
StatusOr<int64_t> PositionsIn(const Json& config) {
  constexpr std::string_view kCountFromPadding[] = {"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert",
                                                    "mpnet",   "longformer",  "data2vec-text",  "ibert"};
  const auto found = config.find("max_position_embeddings");
  if (found == config.end() || !found->is_number_integer()) return 0;  // other encoders' may be anything
  const auto kind = config.find("model_type");
  const bool from_padding =
      kind != config.end() && kind->is_string() &&
      std::ranges::find(kCountFromPadding, kind->get_ref<const std::string&>()) != std::end(kCountFromPadding);
  int64_t padding = 1;
  const auto id = config.find("pad_token_id");
  if (id != config.end() && id->is_number_integer()) padding = id->get<int64_t>();
  return std::max<int64_t>(found->get<int64_t>() - (from_padding ? padding + 1 : 0), 0);
}

}  // namespace

StatusOr<Pipeline> ReadPipeline(const ModelFolder& folder, TextTask task) {
  Pipeline pipeline;
  pipeline.task = task;
  Json config = Json::object();
  if (HasFile(folder, kConfig)) {
    SWIZZLE_ASSIGN_OR_RETURN(config, ObjectIn(folder, std::string(kConfig)));
  }
  SWIZZLE_ASSIGN_OR_RETURN(pipeline.positions, PositionsIn(config));
  if (task == TextTask::kClassification) {
    SWIZZLE_RETURN_IF_ERROR(TakeLabels(config, pipeline));
    return pipeline;
  }
  bool pools_prompts = true;
  if (HasFile(folder, kModules)) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Module> modules, ModulesIn(folder));
    for (const Module& module : modules) SWIZZLE_RETURN_IF_ERROR(TakeModule(folder, module, pipeline, pools_prompts));
  }
  if (HasFile(folder, kPrompts)) SWIZZLE_RETURN_IF_ERROR(TakePrompts(folder, pools_prompts, pipeline));
  if (HasFile(folder, kSettings)) SWIZZLE_RETURN_IF_ERROR(TakeSettings(folder, pipeline));
  return pipeline;
}

}  // namespace swizzle::text
