#include "server/config/model_config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

namespace pb = google::protobuf;
using inference::ModelConfig;

constexpr int64_t kMaxBatchSize = 4096;
constexpr int64_t kMaxInstances = 256;
constexpr int64_t kMaxQueueSize = 1'000'000;
constexpr int64_t kMaxQueueDelayUs = 60'000'000;
constexpr int64_t kMaxTimeoutUs = 86'400'000'000;
constexpr int64_t kMaxExecuteDelayMs = 60'000;
constexpr int64_t kMaxBatchTokens = int64_t{1} << 22;
constexpr std::string_view kExecuteDelayKey = "execute_delay_ms";
constexpr std::string_view kMaxBatchTokensKey = "max_batch_tokens";
constexpr std::string_view kComputeMaskedKey = "compute_masked";
constexpr std::string_view kPrecisionKey = "precision";

// Fields that mean something to this server. A message is looked into where the field that holds it is here.
constexpr std::array<std::string_view, 23> kHonoured = {
    "inference.ModelConfig.name",
    "inference.ModelConfig.platform",
    "inference.ModelConfig.backend",
    "inference.ModelConfig.max_batch_size",
    "inference.ModelConfig.input",
    "inference.ModelConfig.output",
    "inference.ModelConfig.instance_group",
    "inference.ModelConfig.dynamic_batching",
    "inference.ModelConfig.parameters",
    "inference.ModelInput.name",
    "inference.ModelInput.data_type",
    "inference.ModelInput.dims",
    "inference.ModelOutput.name",
    "inference.ModelOutput.data_type",
    "inference.ModelOutput.dims",
    "inference.ModelInstanceGroup.count",
    "inference.ModelInstanceGroup.kind",
    "inference.ModelDynamicBatching.preferred_batch_size",
    "inference.ModelDynamicBatching.max_queue_delay_microseconds",
    "inference.ModelDynamicBatching.default_queue_policy",
    "inference.ModelQueuePolicy.default_timeout_microseconds",
    "inference.ModelQueuePolicy.allow_timeout_override",
    "inference.ModelQueuePolicy.max_queue_size",
};

struct DataTypeName {
  inference::DataType config;
  DType dtype;
};
constexpr std::array<DataTypeName, 14> kDataTypes = {{
    {inference::TYPE_BOOL, DType::kBool},
    {inference::TYPE_UINT8, DType::kUint8},
    {inference::TYPE_UINT16, DType::kUint16},
    {inference::TYPE_UINT32, DType::kUint32},
    {inference::TYPE_UINT64, DType::kUint64},
    {inference::TYPE_INT8, DType::kInt8},
    {inference::TYPE_INT16, DType::kInt16},
    {inference::TYPE_INT32, DType::kInt32},
    {inference::TYPE_INT64, DType::kInt64},
    {inference::TYPE_FP16, DType::kFloat16},
    {inference::TYPE_FP32, DType::kFloat32},
    {inference::TYPE_FP64, DType::kFloat64},
    {inference::TYPE_STRING, DType::kString},
    {inference::TYPE_BF16, DType::kBFloat16},
}};

inference::DataType ConfigType(DType dtype) {
  const auto found =
      std::find_if(kDataTypes.begin(), kDataTypes.end(), [&](const DataTypeName& row) { return row.dtype == dtype; });
  return found->config;
}

std::optional<DType> DTypeOf(inference::DataType type) {
  for (const DataTypeName& row : kDataTypes) {
    if (row.config == type) return row.dtype;
  }
  return std::nullopt;
}

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

bool IsHonoured(const pb::FieldDescriptor& field) {
  const std::string_view name = field.full_name();
  return std::find(kHonoured.begin(), kHonoured.end(), name) != kHonoured.end();
}

// UNIMPLEMENTED for the first field that is set and not honoured; `prefix` is the path to `message`.
Status RefuseOtherFields(const pb::Message& message, const std::string& prefix) {
  const pb::Reflection& reflection = *message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (!IsHonoured(*field)) return Unimplemented("the field '", path, "' is not supported yet; remove it");
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (!field->is_repeated()) {
      SWIZZLE_RETURN_IF_ERROR(RefuseOtherFields(reflection.GetMessage(message, field), path + "."));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      SWIZZLE_RETURN_IF_ERROR(RefuseOtherFields(reflection.GetRepeatedMessage(message, field, i), path + "."));
    }
  }
  return absl::OkStatus();
}

template <typename Number>
Status CheckRange(std::string_view field, Number value, int64_t low, int64_t high) {
  if (std::cmp_greater_equal(value, low) && std::cmp_less_equal(value, high)) return absl::OkStatus();
  return InvalidArgument("'", field, "' is ", value, "; it must be from ", low, " to ", high);
}

Status CheckOneOf(std::string_view field, const std::string& value, std::initializer_list<std::string_view> known) {
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

// Inputs and outputs have the same fields, in two messages.
template <typename Tensor>
StatusOr<TensorSpec> SpecOf(std::string_view direction, const Tensor& tensor) {
  if (tensor.name().empty()) return InvalidArgument("an ", direction, " has no 'name'");
  const std::optional<DType> dtype = DTypeOf(tensor.data_type());
  if (!dtype) {
    return InvalidArgument(direction, " '", tensor.name(), "' has no 'data_type'; give one, such as TYPE_FP32");
  }
  for (const int64_t dim : tensor.dims()) {
    if (dim < 1 && dim != -1) {
      return InvalidArgument(direction, " '", tensor.name(), "' has the dimension ", dim,
                             "; use -1 or a positive number");
    }
  }
  return TensorSpec{tensor.name(), *dtype, Shape(tensor.dims().begin(), tensor.dims().end())};
}

template <typename Tensors>
StatusOr<std::vector<TensorSpec>> SpecsOf(std::string_view direction, const Tensors& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& tensor : tensors) {
    SWIZZLE_ASSIGN_OR_RETURN(TensorSpec spec, SpecOf(direction, tensor));
    for (const TensorSpec& other : specs) {
      if (other.name == spec.name) return InvalidArgument(direction, " '", spec.name, "' is there twice");
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

StatusOr<int64_t> ParseWhole(std::string_view key, const std::string& text, int64_t low, int64_t high) {
  int64_t value = -1;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || value < low || value > high) {
    return InvalidArgument("parameter '", key, "' is '", text, "'; it must be a whole number from ", low, " to ", high);
  }
  return value;
}

StatusOr<bool> ParseComputeMasked(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  return InvalidArgument("parameter '", kComputeMaskedKey, "' is '", text, "'; it must be true or false");
}

StatusOr<Precision> ParsePrecision(const std::string& text) {
  if (const auto precision = PrecisionFromName(text)) return *precision;
  return InvalidArgument("parameter '", kPrecisionKey, "' is '", text, "'; it must be FP32, TF32, FP16 or BF16");
}

Status CheckParameters(const ModelConfig& config) {
  for (const auto& [key, parameter] : config.parameters()) {
    const std::string& text = parameter.string_value();
    if (key == kExecuteDelayKey) {
      if (!IsIdentity(config)) {
        return InvalidArgument("parameter '", key, "' is for models with `backend: \"identity\"` only");
      }
      SWIZZLE_RETURN_IF_ERROR(ParseWhole(key, text, 0, kMaxExecuteDelayMs).status());
    } else if (key == kMaxBatchTokensKey) {
      SWIZZLE_RETURN_IF_ERROR(ParseWhole(key, text, 1, kMaxBatchTokens).status());
    } else if (key == kComputeMaskedKey) {
      SWIZZLE_RETURN_IF_ERROR(ParseComputeMasked(text).status());
    } else if (key == kPrecisionKey) {
      SWIZZLE_RETURN_IF_ERROR(ParsePrecision(text).status());
    } else {
      return InvalidArgument("parameter '", key, "' is not known");
    }
  }
  return absl::OkStatus();
}

// All but the precision are of models of token sequences.
Status ApplyParameters(const ModelConfig& config, ModelSpec& spec) {
  for (const auto& [key, parameter] : config.parameters()) {
    if (spec.max_batch_tokens == 0 && key != kPrecisionKey) {
      return InvalidArgument("parameter '", key, "' is for models of token sequences; this one is none");
    }
    if (key == kMaxBatchTokensKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.max_batch_tokens, ParseWhole(key, parameter.string_value(), 1, kMaxBatchTokens));
    } else if (key == kComputeMaskedKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.compute_masked, ParseComputeMasked(parameter.string_value()));
    } else if (key == kPrecisionKey) {
      SWIZZLE_ASSIGN_OR_RETURN(spec.precision, ParsePrecision(parameter.string_value()));
    }
  }
  return absl::OkStatus();
}

Status Check(const ModelConfig& config, std::string_view name) {
  SWIZZLE_RETURN_IF_ERROR(RefuseOtherFields(config, ""));
  if (!config.name().empty() && config.name() != name) {
    return InvalidArgument("'name' is '", config.name(), "', but the directory is '", name, "'");
  }
  SWIZZLE_RETURN_IF_ERROR(CheckOneOf("backend", config.backend(), {"swizzle", "identity", "onnxruntime"}));
  SWIZZLE_RETURN_IF_ERROR(CheckOneOf("platform", config.platform(),
                                     {"swizzle_onnx", "swizzle_swz", "swizzle_identity", "onnxruntime_onnx"}));
  SWIZZLE_RETURN_IF_ERROR(CheckRange("max_batch_size", config.max_batch_size(), 0, kMaxBatchSize));
  SWIZZLE_RETURN_IF_ERROR(CheckInstanceGroups(config));
  SWIZZLE_RETURN_IF_ERROR(CheckDynamicBatching(config));
  SWIZZLE_RETURN_IF_ERROR(SpecsOf("input", config.input()));
  SWIZZLE_RETURN_IF_ERROR(SpecsOf("output", config.output()));
  return CheckParameters(config);
}

void ApplyQueuePolicy(const inference::ModelQueuePolicy& policy, ModelSpec& spec) {
  if (policy.max_queue_size() > 0) spec.max_queue_size = policy.max_queue_size();
  if (policy.default_timeout_microseconds() > 0) {
    spec.default_timeout = absl::Microseconds(policy.default_timeout_microseconds());
  }
  spec.allow_timeout_override = policy.allow_timeout_override();
}

Status ApplyDynamicBatching(const inference::ModelDynamicBatching& batching, ModelSpec& spec) {
  if (spec.max_batch_size == 0) return InvalidArgument("'dynamic_batching' needs a 'max_batch_size' above 0");
  for (const int32_t size : batching.preferred_batch_size()) {
    SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.preferred_batch_size", size, 1, spec.max_batch_size));
  }
  spec.preferred_batch_sizes.assign(batching.preferred_batch_size().begin(), batching.preferred_batch_size().end());
  std::sort(spec.preferred_batch_sizes.begin(), spec.preferred_batch_sizes.end());
  spec.max_queue_delay = absl::Microseconds(batching.max_queue_delay_microseconds());
  if (batching.has_default_queue_policy()) ApplyQueuePolicy(batching.default_queue_policy(), spec);
  return absl::OkStatus();
}

InstanceKind KindOf(inference::ModelInstanceGroup::Kind kind) {
  if (kind == inference::ModelInstanceGroup::KIND_CPU) return InstanceKind::kCpu;
  return kind == inference::ModelInstanceGroup::KIND_GPU ? InstanceKind::kGpu : InstanceKind::kAuto;
}

// Everything that does not depend on what the model is made of. REQUIRES: spec.max_batch_size is final.
Status ApplyScheduling(const ModelConfig& config, ModelSpec& spec) {
  if (config.instance_group_size() > 0) spec.instance_count = 0;
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    spec.instance_count += std::max(group.count(), 1);
    spec.instance_kind = KindOf(group.kind());
  }
  spec.dynamic_batching = spec.max_batch_size > 0 && (config.has_dynamic_batching() || !config.has_max_batch_size());
  if (!config.has_dynamic_batching()) return absl::OkStatus();
  return ApplyDynamicBatching(config.dynamic_batching(), spec);
}

bool DimsAgree(const Shape& configured, const Shape& actual) {
  return std::equal(configured.begin(), configured.end(), actual.begin(), actual.end(),
                    [](int64_t a, int64_t b) { return a == b || a == -1 || b == -1; });
}

std::string NamesOf(const std::vector<TensorSpec>& tensors) {
  std::string names;
  for (const TensorSpec& tensor : tensors) names += Concat(names.empty() ? "'" : ", '", tensor.name, "'");
  return names;
}

// One tensor as the model has it, with dims that it fixes and the file leaves free.
StatusOr<TensorSpec> MatchTensor(std::string_view direction, const TensorSpec& configured,
                                 const std::vector<TensorSpec>& actual) {
  const auto found = std::find_if(actual.begin(), actual.end(),
                                  [&](const TensorSpec& tensor) { return tensor.name == configured.name; });
  if (found == actual.end()) {
    return InvalidArgument("the model has no ", direction, " '", configured.name, "'; it has ", NamesOf(actual));
  }
  if (configured.dtype != found->dtype || !DimsAgree(configured.dims, found->dims)) {
    return InvalidArgument(direction, " '", configured.name, "' is ", DTypeName(configured.dtype), " ",
                           ShapeText(configured.dims), " in the configuration, but ", DTypeName(found->dtype), " ",
                           ShapeText(found->dims), " in the model");
  }
  TensorSpec matched = *found;
  for (size_t i = 0; i < matched.dims.size(); ++i) {
    if (matched.dims[i] == -1) matched.dims[i] = configured.dims[i];
  }
  return matched;
}

// Replaces `specs` by the tensors that the file lists, in its order; a file that lists none changes nothing.
template <typename Tensors>
Status MatchTensors(std::string_view direction, const Tensors& tensors, std::vector<TensorSpec>& specs) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorSpec> configured, SpecsOf(direction, tensors));
  if (configured.empty()) return absl::OkStatus();
  std::vector<TensorSpec> matched;
  for (const TensorSpec& tensor : configured) {
    SWIZZLE_ASSIGN_OR_RETURN(TensorSpec spec, MatchTensor(direction, tensor, specs));
    matched.push_back(std::move(spec));
  }
  for (const TensorSpec& tensor : specs) {
    if (std::none_of(matched.begin(), matched.end(), [&](const TensorSpec& m) { return m.name == tensor.name; })) {
      return InvalidArgument("the configuration leaves out the model's ", direction, " '", tensor.name,
                             "'; list all of them, or none");
    }
  }
  specs = std::move(matched);
  return absl::OkStatus();
}

// Settles max_batch_size; where it is 0 for a model with a free batch dimension, that dimension joins the dims.
Status SettleBatchDimension(const ModelConfig& config, ModelSpec& spec) {
  const bool free_batch = spec.max_batch_size > 0;
  const bool listed = config.input_size() > 0 || config.output_size() > 0;
  if (!config.has_max_batch_size() && !listed) return absl::OkStatus();
  if (config.max_batch_size() > 0 && !free_batch) {
    return InvalidArgument("'max_batch_size' is ", config.max_batch_size(),
                           ", but the model's batch dimension is fixed; set it to 0");
  }
  spec.max_batch_size = config.max_batch_size();
  if (spec.max_batch_size > 0 || !free_batch) return absl::OkStatus();
  for (std::vector<TensorSpec>* tensors : {&spec.inputs, &spec.outputs}) {
    for (TensorSpec& tensor : *tensors) tensor.dims.insert(tensor.dims.begin(), -1);
  }
  return absl::OkStatus();
}

Status Reconcile(const ModelConfig& config, ModelSpec& spec) {
  SWIZZLE_RETURN_IF_ERROR(SettleBatchDimension(config, spec));
  SWIZZLE_RETURN_IF_ERROR(MatchTensors("input", config.input(), spec.inputs));
  SWIZZLE_RETURN_IF_ERROR(MatchTensors("output", config.output(), spec.outputs));
  SWIZZLE_RETURN_IF_ERROR(ApplyParameters(config, spec));
  return ApplyScheduling(config, spec);
}

template <typename Tensor>
void FillTensor(const TensorSpec& spec, Tensor& tensor) {
  tensor.set_name(spec.name);
  tensor.set_data_type(ConfigType(spec.dtype));
  tensor.mutable_dims()->Add(spec.dims.begin(), spec.dims.end());
}

void FillDynamicBatching(const ModelSpec& spec, inference::ModelDynamicBatching& batching) {
  for (const int64_t size : spec.preferred_batch_sizes) batching.add_preferred_batch_size(static_cast<int32_t>(size));
  batching.set_max_queue_delay_microseconds(absl::ToInt64Microseconds(spec.max_queue_delay));
  inference::ModelQueuePolicy& policy = *batching.mutable_default_queue_policy();
  policy.set_max_queue_size(static_cast<uint32_t>(spec.max_queue_size));
  policy.set_allow_timeout_override(spec.allow_timeout_override);
  if (spec.default_timeout != absl::InfiniteDuration()) {
    policy.set_default_timeout_microseconds(absl::ToInt64Microseconds(spec.default_timeout));
  }
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

StatusOr<ModelSpec> IdentitySpec(const ModelConfig& config, std::string_view name, int64_t version) {
  SWIZZLE_CHECK(IsIdentity(config));
  ModelSpec spec;
  spec.name = name;
  spec.version = version;
  spec.platform = "swizzle_identity";
  spec.backend = "identity";
  spec.max_batch_size = config.max_batch_size();
  SWIZZLE_ASSIGN_OR_RETURN(spec.inputs, SpecsOf("input", config.input()));
  SWIZZLE_ASSIGN_OR_RETURN(spec.outputs, SpecsOf("output", config.output()));
  SWIZZLE_RETURN_IF_ERROR(Annotate(ApplyScheduling(config, spec), "config.pbtxt"));
  return spec;
}

absl::Duration ExecuteDelay(const ModelConfig& config) {
  const auto found = config.parameters().find(std::string(kExecuteDelayKey));
  if (found == config.parameters().end()) return absl::ZeroDuration();
  return absl::Milliseconds(*ParseWhole(kExecuteDelayKey, found->second.string_value(), 0, kMaxExecuteDelayMs));
}

StatusOr<ModelSpec> ConfigureSpec(const ModelConfig& config, ModelSpec derived) {
  SWIZZLE_RETURN_IF_ERROR(Annotate(Reconcile(config, derived), "config.pbtxt"));
  return derived;
}

ModelConfig ConfigOf(const ModelSpec& spec, const ModelConfig& given) {
  ModelConfig config;
  config.set_name(spec.name);
  config.set_platform(spec.platform);
  config.set_backend(spec.backend);
  config.set_max_batch_size(static_cast<int32_t>(spec.max_batch_size));
  for (const TensorSpec& tensor : spec.inputs) FillTensor(tensor, *config.add_input());
  for (const TensorSpec& tensor : spec.outputs) FillTensor(tensor, *config.add_output());
  inference::ModelInstanceGroup& group = *config.add_instance_group();
  group.set_count(spec.instance_count);
  group.set_kind(spec.instance_kind == InstanceKind::kGpu ? inference::ModelInstanceGroup::KIND_GPU
                                                          : inference::ModelInstanceGroup::KIND_CPU);
  if (spec.dynamic_batching) FillDynamicBatching(spec, *config.mutable_dynamic_batching());
  *config.mutable_parameters() = given.parameters();
  return config;
}

}  // namespace swizzle
