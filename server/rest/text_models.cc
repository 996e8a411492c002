#include "server/rest/text_models.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "kernels/base/precision.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "model_loader/files/printable_name.h"
#include "server/model/text_model.h"

namespace swizzle {
namespace {

constexpr std::string_view kModelPath = "/v2/models/NAME";

std::optional<text::TextTask> TaskOf(const Model& model) {
  const auto facts = model.facts();
  const auto task = facts->properties.find("swizzle_text");
  return task == facts->properties.end() ? std::nullopt : text::TextTaskOf(task->second);
}

// A reranker: what it says of a pair is one number.
bool HasOneLabel(const ModelSpec& spec) {
  const auto scores = std::ranges::find(spec.outputs, kScoresOutput, &TensorSpec::name);
  return scores != spec.outputs.end() && scores->dims.back() == 1;
}

bool Serves(const Model& model, TextEndpoint endpoint) {
  const std::optional<text::TextTask> its = TaskOf(model), wanted = TaskOf(endpoint);
  if (!its || !wanted) return its.has_value();
  if (wanted == text::TextTask::kEmbedding) return text::Embeds(*its);
  return its == wanted && (endpoint != TextEndpoint::kTeiRerank || HasOneLabel(model.spec()));
}

const char* NeedOf(TextEndpoint endpoint) {
  switch (endpoint) {
    case TextEndpoint::kOpenAiEmbeddings:
    case TextEndpoint::kTeiEmbed:
    case TextEndpoint::kTeiSimilarity:
      return "gives vectors of texts (text=embedding)";
    case TextEndpoint::kTeiEmbedAll:
      return "gives vectors of tokens (text=token_embedding)";
    case TextEndpoint::kTeiRerank:
      return "scores pairs of texts by one label (text=classification)";
    case TextEndpoint::kTeiPredict:
      return "scores labels of texts (text=classification)";
    case TextEndpoint::kTeiTokenize:
    case TextEndpoint::kTeiDecode:
      return "takes texts";
  }
  SWIZZLE_CHECK(false);
}

// Of those that serve and that the client may use. `need` and `else_what` are for messages.
StatusOr<std::shared_ptr<ServingModel>> OnlyOne(const InferCalls& calls, const HttpCall& call,
                                                absl::FunctionRef<bool(const Model&)> fits, const std::string& need,
                                                const std::string& else_what) {
  const auto shown = [&call] { return call.head().OnlyHeader("authorization"); };
  SWIZZLE_ASSIGN_OR_RETURN(const ModelRepository* repository, calls.repository());
  std::map<std::string, std::shared_ptr<ServingModel>> found;
  for (const ModelStatus& status : repository->List()) {
    if (!status.status.ok() || !calls.CheckModel(status.name, shown).ok()) continue;
    auto serving = repository->Find(status.name, "");
    if (serving.ok() && fits(*(*serving)->model)) found[status.name] = *std::move(serving);
  }
  if (found.size() == 1) return found.begin()->second;
  if (found.empty()) return MakeError(StatusCode::kNotFound, "no model is served that ", need);
  std::string names;
  for (const auto& [name, serving] : found) names += (names.empty() ? "" : ", ") + QuotedName(name);
  return InvalidArgument("several models take texts: ", names, "; ", else_what);
}

StatusOr<std::shared_ptr<ServingModel>> Named(const InferCalls& calls, const HttpCall& call, const std::string& name) {
  return calls.Find(name, [&call] { return call.head().OnlyHeader("authorization"); });
}

Status TakesNoTexts(const std::string& name) {
  return InvalidArgument("model ", QuotedName(name), " takes no texts; ModelMetadata says what it takes");
}

int64_t NumberOf(const std::map<std::string, std::string>& properties, const char* name) {
  const auto found = properties.find(name);
  int64_t number = 0;
  if (found != properties.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  }
  return number;
}

// As PyTorch calls it: "float32" of FP32, "bfloat16" of BF16.
std::string TypeNameOf(Precision precision) {
  const std::string_view name = DTypeName(TypeOf(precision));
  return Concat(name.starts_with('B') ? "bfloat" : "float", name.substr(2));
}

// TEI's ModelType.
nlohmann::ordered_json KindOf(const ModelSpec& spec, const std::map<std::string, std::string>& properties) {
  using nlohmann::ordered_json;
  const auto scores = std::ranges::find(spec.outputs, kScoresOutput, &TensorSpec::name);
  if (scores == spec.outputs.end()) return {{"embedding", {{"pooling", properties.at("swizzle_pooling")}}}};
  ordered_json names = ordered_json::object(), ids = ordered_json::object();
  for (size_t i = 0; scores->labels != nullptr && i < scores->labels->size(); ++i) {
    names[std::to_string(i)] = (*scores->labels)[i];
    ids[(*scores->labels)[i]] = i;
  }
  return {{HasOneLabel(spec) ? "reranker" : "classifier", {{"id2label", names}, {"label2id", ids}}}};
}

}  // namespace

StatusOr<std::shared_ptr<ServingModel>> ModelForTexts(const InferCalls& calls, const HttpCall& call,
                                                      TextEndpoint endpoint, const std::string& name) {
  if (name.empty()) {
    const std::string else_what = endpoint == TextEndpoint::kOpenAiEmbeddings
                                      ? "say which in 'model'"
                                      : Concat("say which by the path: ", kModelPath, PathOf(endpoint));
    const auto fits = [endpoint](const Model& model) { return Serves(model, endpoint); };
    if (endpoint == TextEndpoint::kTeiPredict) {  // a reranker answers where no classifier does
      const auto has_labels = [&](const Model& model) { return fits(model) && !HasOneLabel(model.spec()); };
      auto found = OnlyOne(calls, call, has_labels, NeedOf(endpoint), else_what);
      if (!absl::IsNotFound(found.status())) return found;
    }
    return OnlyOne(calls, call, fits, NeedOf(endpoint), else_what);
  }
  SWIZZLE_ASSIGN_OR_RETURN(std::shared_ptr<ServingModel> serving, Named(calls, call, name));
  if (Serves(*serving->model, endpoint)) return serving;
  if (TaskOf(*serving->model)) {
    return InvalidArgument("model ", QuotedName(name), " takes texts, but is none that ", NeedOf(endpoint));
  }
  return TakesNoTexts(name);
}

StatusOr<std::string> WriteTextInfo(const InferCalls& calls, const HttpCall& call, const std::string& name) {
  const auto takes_texts = [](const Model& model) { return TaskOf(model).has_value(); };
  SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<ServingModel> serving,
                           name.empty() ? OnlyOne(calls, call, takes_texts, "takes texts",
                                                  Concat("say which by the path: ", kModelPath, "/info"))
                                        : Named(calls, call, name));
  if (!takes_texts(*serving->model)) return TakesNoTexts(name);
  constexpr int64_t kLeastTextBytes = 3;  // "",
  const ModelSpec& spec = serving->model->spec();
  const auto facts = serving->model->facts();
  nlohmann::ordered_json info = {{"model_id", spec.name},
                                 {"model_sha", nullptr},
                                 {"model_dtype", TypeNameOf(spec.precision)},
                                 {"model_type", KindOf(spec, facts->properties)},
                                 {"max_concurrent_requests", spec.PolicyOf(spec.default_priority).max_requests},
                                 {"max_input_length", NumberOf(facts->properties, "swizzle_max_tokens")},
                                 {"max_batch_tokens", spec.max_batch_tokens},
                                 {"max_batch_requests", nullptr},
                                 {"max_client_batch_size", calls.limits.max_message_bytes / kLeastTextBytes},
                                 {"auto_truncate", false},
                                 {"tokenization_workers", AvailableCpus()},
                                 {"version", SWIZZLE_VERSION},
                                 {"sha", nullptr},
                                 {"docker_label", nullptr}};
  if (spec.max_batch_size > 0) info["max_batch_requests"] = spec.max_batch_size;
  return info.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace swizzle
