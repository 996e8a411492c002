#include "server/config/model_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "server/config/config_checks.h"
#include "server/config/config_fields.h"
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
constexpr std::array<std::string_view, 3> kBackends = {"swizzle", "identity", "onnxruntime"};
constexpr std::array<std::string_view, 5> kPlatforms = {"swizzle_onnx", "swizzle_swz", "swizzle_safetensors",
                                                        "swizzle_identity", "onnxruntime_onnx"};

// Keeps the first error, with its line.
class FirstError final : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = line < 0 ? message : Concat("line ", line + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

Status CheckOneOf(std::string_view field, const std::string& value, std::span<const std::string_view> known) {
  if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) return absl::OkStatus();
  std::string list;
  for (const std::string_view name : known) list += Concat(list.empty() ? "'" : ", '", name, "'");
  return InvalidArgument("'", field, "' is '", value, "', which this server does not have; it has ", list);
}

Status CheckInstanceGroups(const ModelConfig& config) {
  int64_t count = 0;
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    SWIZZLE_RETURN_IF_ERROR(CheckRange("instance_group.count", group.count(), 0, kMaxInstances));
    if (group.kind() == inference::ModelInstanceGroup::KIND_MODEL) {
      return Unimplemented("'instance_group.kind' is KIND_MODEL; use KIND_CPU, KIND_GPU or KIND_AUTO");
    }
    if (group.kind() != config.instance_group(0).kind()) {
      return Unimplemented("'instance_group.kind' differs between groups; all executors of a model run on one kind");
    }
    count += std::max<int64_t>(group.count(), 1);
  }
  return CheckRange("instance_group.count (all groups together)", count, 0, kMaxInstances);
}

Status CheckDynamicBatching(const ModelConfig& config) {
  if (!config.has_dynamic_batching()) return absl::OkStatus();
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  const inference::ModelQueuePolicy& policy = batching.default_queue_policy();
  SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.max_queue_delay_microseconds",
                                     batching.max_queue_delay_microseconds(), 0, kMaxQueueDelayUs));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.default_queue_policy.default_timeout_microseconds",
                                     policy.default_timeout_microseconds(), 0, kMaxTimeoutUs));
  return CheckRange("dynamic_batching.default_queue_policy.max_queue_size", policy.max_queue_size(), 0, kMaxQueueSize);
}

Status Check(const ModelConfig& config, std::string_view name) {
  SWIZZLE_RETURN_IF_ERROR(RefuseOtherFields(config));
  if (!config.name().empty() && config.name() != name) {
    return InvalidArgument("'name' is '", config.name(), "', but the directory is '", name, "'");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckOneOf("backend", config.backend(), kBackends));
  SWIZZLE_RETURN_IF_ERROR(CheckOneOf("platform", config.platform(), kPlatforms));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("max_batch_size", config.max_batch_size(), 0, kMaxBatchSize));
  SWIZZLE_RETURN_IF_ERROR(CheckInstanceGroups(config));
  SWIZZLE_RETURN_IF_ERROR(CheckDynamicBatching(config));
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
  if (!parser.Parse(&stream, &config)) return InvalidArgument("config.pbtxt: ", errors.text());
  SWIZZLE_RETURN_IF_ERROR(Annotate(Check(config, name), "config.pbtxt"));
  return config;
}

bool IsIdentity(const ModelConfig& config) { return config.backend() == "identity"; }

}  // namespace swizzle
