#include "server/config/model_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "model_loader/files/file_kind.h"
#include "model_loader/files/printable_name.h"
#include "server/config/config_checks.h"
#include "server/config/config_parameters.h"
#include "server/config/config_tensors.h"

namespace swizzle {
namespace {

namespace pb = google::protobuf;
using inference::ModelConfig;

constexpr int64_t kMaxBatchSize = 4096;
constexpr int64_t kMaxInstances = 256;
constexpr int64_t kMaxQueueSize = 1'000'000;
constexpr int64_t kMaxQueueDelayUs = 60'000'000;
constexpr int64_t kMaxTimeoutUs = 86'400'000'000;
constexpr int64_t kMaxPriorityLevels = 100;
constexpr int64_t kMaxGpu = 1023;
constexpr int64_t kMaxWarmUpCount = 10'000;
constexpr std::array<std::string_view, 4> kBackends = {"swizzle", "identity", "onnxruntime", "openvino"};
constexpr std::string_view kEnsemble = "ensemble";
constexpr std::array<std::string_view, 6> kPlatforms = {"swizzle_onnx",     "swizzle_swz",      "swizzle_safetensors",
                                                        "swizzle_identity", "onnxruntime_onnx", kEnsemble};
constexpr int64_t kMaxSteps = 64;

// Keeps the first error, with its line. Protobuf calls the first function before version 22, and then the second.
class FirstError final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber, const std::string& message) { Keep(line, message); }
  void RecordError(int line, pb::io::ColumnNumber, absl::string_view message) { Keep(line, std::string(message)); }
  const std::string& text() const { return text_; }

 private:
  void Keep(int line, const std::string& message) {
    if (!text_.empty()) return;
    text_ = line < 0 ? message : Concat("line ", line + 1, ": ", message);
  }

  std::string text_;
};

Status CheckOneOf(std::string_view field, const std::string& value, std::span<const std::string_view> known) {
  if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) return absl::OkStatus();
  std::string list;
  for (const std::string_view name : known) list += Concat(list.empty() ? "'" : ", '", name, "'");
  return InvalidArgument("'", field, "' is ", QuotedName(value), ", which this server does not have; it has ", list,
                         ", or none need be given: export the model to ONNX");
}

// How many of `groups` are to be on this GPU.
int64_t CountOn(const ModelConfig& config, int gpu) {
  int64_t count = 0;
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    if (std::ranges::count(group.gpus(), gpu) > 0) count += std::max(group.count(), 1);
  }
  return count;
}

// Each executor of a model runs on any GPU that it has, and there are as many on each.
Status CheckGpus(const ModelConfig& config) {
  const std::vector<int> named = NamedGpus(config);
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    if (!named.empty() && group.kind() == inference::ModelInstanceGroup::KIND_CPU) {
      return InvalidArgument("'instance_group.gpus' names GPUs beside KIND_CPU; remove one of the two");
    }
    if (!named.empty() && group.gpus().empty()) {
      return Unimplemented("'instance_group.gpus' is in some groups alone; name GPUs in all of them, or in none");
    }
    for (const int gpu : group.gpus()) {
      SWIZZLE_RETURN_IF_ERROR(CheckRange("instance_group.gpus", gpu, 0, kMaxGpu));
      if (std::ranges::count(group.gpus(), gpu) > 1) {
        return InvalidArgument("'instance_group.gpus' names GPU ", gpu, " twice; raise 'count' for more executors");
      }
    }
  }
  for (const int gpu : named) {
    if (CountOn(config, gpu) == CountOn(config, named.front())) continue;
    return Unimplemented("'instance_group' gives GPU ", named.front(), " ", CountOn(config, named.front()),
                         " executors, and GPU ", gpu, " ", CountOn(config, gpu), "; give each as many");
  }
  return absl::OkStatus();
}

Status CheckInstanceGroups(const ModelConfig& config) {
  int64_t count = 0;
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    SWIZZLE_RETURN_IF_ERROR(CheckRange("instance_group.count", group.count(), 0, kMaxInstances));
    if (group.kind() != config.instance_group(0).kind()) {
      return Unimplemented("'instance_group.kind' differs between groups; all executors of a model run on one kind");
    }
    count += std::max<int64_t>(group.count(), 1);
  }
  SWIZZLE_RETURN_IF_ERROR(CheckRange("instance_group.count (all groups together)", count, 0, kMaxInstances));
  return CheckGpus(config);
}

Status CheckQueuePolicy(const std::string& field, const inference::ModelQueuePolicy& policy) {
  SWIZZLE_RETURN_IF_ERROR(
      CheckRange(field + ".default_timeout_microseconds", policy.default_timeout_microseconds(), 0, kMaxTimeoutUs));
  return CheckRange(field + ".max_queue_size", policy.max_queue_size(), 0, kMaxQueueSize);
}

Status CheckPriorities(const inference::ModelDynamicBatching& batching) {
  SWIZZLE_RETURN_IF_ERROR(
      CheckRange("dynamic_batching.priority_levels", batching.priority_levels(), 0, kMaxPriorityLevels));
  const auto levels = std::max<int64_t>(static_cast<int64_t>(batching.priority_levels()), 1);
  SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.default_priority_level", batching.default_priority_level(),
                                     levels > 1 ? 1 : 0, levels));
  for (const auto& [level, policy] : batching.priority_queue_policy()) {
    SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.priority_queue_policy.key", level, 1, levels));
    SWIZZLE_RETURN_IF_ERROR(CheckQueuePolicy("dynamic_batching.priority_queue_policy.value", policy));
  }
  return absl::OkStatus();
}

Status CheckDynamicBatching(const ModelConfig& config) {
  if (!config.has_dynamic_batching()) return absl::OkStatus();
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.max_queue_delay_microseconds",
                                     batching.max_queue_delay_microseconds(), 0, kMaxQueueDelayUs));
  SWIZZLE_RETURN_IF_ERROR(CheckQueuePolicy("dynamic_batching.default_queue_policy", batching.default_queue_policy()));
  return CheckPriorities(batching);
}

// How many rows run together, if the file says so.
int64_t MostRows(const ModelConfig& config) {
  return config.has_max_batch_size() ? std::max(config.max_batch_size(), 1) : kMaxBatchSize;
}

Status CheckWarmUp(const ModelConfig& config) {
  for (const inference::ModelWarmup& sample : config.model_warmup()) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(sample.name(), "a sample of 'model_warmup'"));
    if (sample.name().empty()) return InvalidArgument("a sample of 'model_warmup' has no 'name'");
    SWIZZLE_RETURN_IF_ERROR(CheckRange("model_warmup.batch_size", sample.batch_size(), 0, MostRows(config)));
    SWIZZLE_RETURN_IF_ERROR(CheckRange("model_warmup.count", sample.count(), 0, kMaxWarmUpCount));
  }
  return absl::OkStatus();
}

// A plain name, of a kind of file that is known.
Status CheckModelFilename(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  SWIZZLE_RETURN_IF_ERROR(CheckName(name, "the file of 'default_model_filename'"));
  if (name.find('/') != std::string::npos || name.front() == '.') {
    return InvalidArgument("'default_model_filename' is '", name,
                           "'; it must be the plain name of a file in the version's directory");
  }
  constexpr std::array<std::string_view, 4> kEndings = {".onnx", ".swz", ".safetensors", ".safetensors.index.json"};
  if (std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); })) {
    return absl::OkStatus();
  }
  return InvalidArgument("'default_model_filename' is '", name,
                         "'; known are models that end in .onnx, .swz and .safetensors: export the model to ONNX");
}

bool IsReshaped(const ModelConfig& config) {
  const auto is_reshaped = [](const auto& tensor) { return tensor.has_reshape(); };
  return std::ranges::any_of(config.input(), is_reshaped) || std::ranges::any_of(config.output(), is_reshaped);
}

// An ensemble runs nothing by itself.
Status CheckFieldsOfEnsemble(const ModelConfig& config) {
  const std::pair<std::string_view, bool> of_models[] = {
      {"instance_group", config.instance_group_size() > 0},
      {"model_warmup", config.model_warmup_size() > 0},
      {"default_model_filename", !config.default_model_filename().empty()},
      {"model_transaction_policy.decoupled", config.model_transaction_policy().decoupled()},
      {"reshape", IsReshaped(config)}};
  for (const auto& [field, is_set] : of_models) {
    if (is_set) return InvalidArgument("'", field, "' is for the models of the steps; remove it from the ensemble");
  }
  if (!config.backend().empty()) return InvalidArgument("'backend' is given, and an ensemble has none; remove it");
  if (config.input_size() > 0 && config.output_size() > 0) return absl::OkStatus();
  return InvalidArgument("an ensemble lists its inputs and its outputs: 'input' and 'output'");
}

Status CheckEnsemble(const ModelConfig& config) {
  if (!IsEnsemble(config)) {
    if (config.platform() != kEnsemble) return absl::OkStatus();
    return InvalidArgument("'platform' is 'ensemble', but there is no 'ensemble_scheduling'");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckFieldsOfEnsemble(config));
  SWIZZLE_RETURN_IF_ERROR(
      CheckRange("ensemble_scheduling.step (how many)", config.ensemble_scheduling().step_size(), 1, kMaxSteps));
  for (const auto& step : config.ensemble_scheduling().step()) {
    SWIZZLE_RETURN_IF_ERROR(CheckName(step.model_name(), "a model of 'ensemble_scheduling.step'"));
    if (step.model_name().empty()) return InvalidArgument("a step of 'ensemble_scheduling' has no 'model_name'");
    SWIZZLE_RETURN_IF_ERROR(CheckRange("ensemble_scheduling.step.model_version", step.model_version(), -1,
                                       std::numeric_limits<int64_t>::max()));
    if (step.output_map().empty()) {
      return InvalidArgument("step '", step.model_name(), "' of 'ensemble_scheduling' has no 'output_map'");
    }
    for (const auto& [port, tensor] : step.output_map()) {
      SWIZZLE_RETURN_IF_ERROR(CheckName(tensor, "a tensor of 'ensemble_scheduling.step.output_map'"));
    }
  }
  return absl::OkStatus();
}

Status Check(const ModelConfig& config, std::string_view name) {
  SWIZZLE_RETURN_IF_ERROR(RefuseFields(config));
  if (!config.name().empty() && config.name() != name) {
    return InvalidArgument("'name' is '", config.name(), "', but the directory is '", name, "'");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckOneOf("backend", config.backend(), kBackends));
  SWIZZLE_RETURN_IF_ERROR(CheckOneOf("platform", config.platform(), kPlatforms));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("max_batch_size", config.max_batch_size(), 0, kMaxBatchSize));
  SWIZZLE_RETURN_IF_ERROR(CheckModelFilename(config.default_model_filename()));
  SWIZZLE_RETURN_IF_ERROR(CheckInstanceGroups(config));
  SWIZZLE_RETURN_IF_ERROR(CheckDynamicBatching(config));
  SWIZZLE_RETURN_IF_ERROR(CheckWarmUp(config));
  SWIZZLE_RETURN_IF_ERROR(CheckEnsemble(config));
  SWIZZLE_RETURN_IF_ERROR(SpecsOf(config.input()));
  SWIZZLE_RETURN_IF_ERROR(SpecsOf(config.output()));
  return CheckParameters(config);
}

}  // namespace

StatusOr<ModelConfig> ParseModelConfig(std::string_view text, std::string_view name) {
  ModelConfig config;
  FirstError errors;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &config)) {
    const std::string_view kind = KindOfFile(std::as_bytes(std::span(text)));
    return InvalidArgument("config.pbtxt: ", kind.empty() ? errors.text() : Concat("this is ", kind));
  }
  SWIZZLE_RETURN_IF_ERROR(Annotate(Check(config, name), "config.pbtxt"));
  return config;
}

StatusOr<ModelConfig> ParseModelConfigJson(std::string_view text, std::string_view name) {
  ModelConfig config;
  const auto parsed = pb::util::JsonStringToMessage(std::string(text), &config);
  if (!parsed.ok()) {
    return InvalidArgument("parameter 'config' is no model configuration as JSON: ", std::string(parsed.message()));
  }
  SWIZZLE_RETURN_IF_ERROR(Annotate(Check(config, name), "parameter 'config'"));
  return config;
}

std::vector<ConfigNotice> NoticesOf(const ModelConfig& config) {
  std::vector<ConfigNotice> notices = FieldsWithoutEffect(config);
  for (const auto& [key, parameter] : config.parameters()) {
    if (const OtherParameter* const other = FindOtherParameter(key)) {
      notices.push_back({Concat("parameters.", key), Concat("it tunes the backend ", other->backend)});
    }
  }
  return notices;
}

std::vector<int> NamedGpus(const ModelConfig& config) {
  std::set<int> named;
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    named.insert(group.gpus().begin(), group.gpus().end());
  }
  return {named.begin(), named.end()};
}

int ExecutorsOnEach(const ModelConfig& config) {
  if (const std::vector<int> named = NamedGpus(config); !named.empty()) {
    return static_cast<int>(CountOn(config, named.front()));
  }
  int count = 0;
  for (const inference::ModelInstanceGroup& group : config.instance_group()) count += std::max(group.count(), 1);
  return count;
}

bool IsIdentity(const ModelConfig& config) { return config.backend() == "identity"; }

bool IsEnsemble(const ModelConfig& config) { return config.has_ensemble_scheduling(); }

}  // namespace swizzle
