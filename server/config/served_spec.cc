#include "server/config/served_spec.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/config/config_checks.h"
#include "server/config/config_metrics.h"
#include "server/config/config_parameters.h"
#include "server/config/config_tensors.h"
#include "server/config/model_config.h"

namespace swizzle {
namespace {

using inference::ModelConfig;

// `unless_given`: what there is without a policy.
QueuePolicy PolicyOf(const inference::ModelQueuePolicy& given, QueuePolicy unless_given) {
  QueuePolicy policy = std::move(unless_given);
  if (given.max_queue_size() > 0) policy.max_requests = given.max_queue_size();
  policy.delays_late = given.timeout_action() == inference::ModelQueuePolicy::DELAY;
  if (policy.delays_late) policy.default_timeout = absl::InfiniteDuration();  // nothing ends for it
  if (given.default_timeout_microseconds() > 0) {
    policy.default_timeout = absl::Microseconds(given.default_timeout_microseconds());
  }
  policy.allow_timeout_override = given.allow_timeout_override();
  return policy;
}

void ApplyQueuePolicies(const inference::ModelDynamicBatching& batching, ModelSpec& spec) {
  QueuePolicy unless_given;
  unless_given.default_timeout += spec.max_queue_delay;  // which is no waiting in vain
  spec.queue_policy = unless_given;
  if (batching.has_default_queue_policy()) {
    spec.queue_policy = PolicyOf(batching.default_queue_policy(), unless_given);
  }
  spec.priority_levels = std::max(1, static_cast<int>(batching.priority_levels()));
  spec.default_priority = std::max(1, static_cast<int>(batching.default_priority_level()));
  for (const auto& [level, policy] : batching.priority_queue_policy()) {
    spec.level_policies[static_cast<int>(level)] = PolicyOf(policy, unless_given);
  }
  for (int level = 1; level <= spec.priority_levels; ++level) {
    spec.max_queue_rows = std::max(spec.max_queue_rows, spec.PolicyOf(level).max_requests);
  }
}

Status ApplyDynamicBatching(const inference::ModelDynamicBatching& batching, ModelSpec& spec) {
  if (spec.max_batch_size == 0) return InvalidArgument("'dynamic_batching' needs a 'max_batch_size' above 0");
  for (const int32_t size : batching.preferred_batch_size()) {
    SWIZZLE_RETURN_IF_ERROR(CheckRange("dynamic_batching.preferred_batch_size", size, 1, spec.max_batch_size));
  }
  spec.preferred_batch_sizes.assign(batching.preferred_batch_size().begin(), batching.preferred_batch_size().end());
  std::sort(spec.preferred_batch_sizes.begin(), spec.preferred_batch_sizes.end());
  spec.max_queue_delay = absl::Microseconds(batching.max_queue_delay_microseconds());
  ApplyQueuePolicies(batching, spec);
  return absl::OkStatus();
}

InstanceKind KindOf(inference::ModelInstanceGroup::Kind kind) {
  if (kind == inference::ModelInstanceGroup::KIND_CPU) return InstanceKind::kCpu;
  return kind == inference::ModelInstanceGroup::KIND_GPU ? InstanceKind::kGpu : InstanceKind::kAuto;
}

// Everything that does not depend on what the model is made of. REQUIRES: spec.max_batch_size is final.
Status ApplyScheduling(const ModelConfig& config, ModelSpec& spec) {
  if (config.instance_group_size() > 0) spec.instance_count = ExecutorsOnEach(config);
  for (const inference::ModelInstanceGroup& group : config.instance_group()) {
    spec.instances_given = spec.instances_given || group.count() > 0;
    spec.instance_kind = KindOf(group.kind());
  }
  spec.dynamic_batching = spec.max_batch_size > 0 && (config.has_dynamic_batching() || !config.has_max_batch_size());
  if (config.has_dynamic_batching()) {
    SWIZZLE_RETURN_IF_ERROR(ApplyDynamicBatching(config.dynamic_batching(), spec));
  }
  if (spec.decoupled && config.response_cache().enable()) {
    return InvalidArgument(
        "'response_cache' keeps one answer to a request, and this model gives any number; remove it");
  }
  spec.cache_responses = config.response_cache().enable();
  SWIZZLE_RETURN_IF_ERROR(ApplyMetrics(config, spec));
  return ApplyQueueParameters(config, spec);
}

// Settles max_batch_size; where it is 0 for a model with a free batch dimension, that dimension joins the dims.
Status SettleBatchDimension(const ModelConfig& config, ModelSpec& spec) {
  const bool free_batch = spec.max_batch_size > 0;
  const bool listed = config.input_size() > 0 || config.output_size() > 0;
  if (!config.has_max_batch_size() && !listed) return absl::OkStatus();
  if (config.max_batch_size() > 0 && !free_batch) {
    if (spec.batch_obstacle.empty()) {
      return InvalidArgument("'max_batch_size' is ", config.max_batch_size(),
                             ", but the model's batch dimension is fixed; set it to 0");
    }
    return InvalidArgument("'max_batch_size' is ", config.max_batch_size(), ", but requests can share no batch (",
                           spec.batch_obstacle, "); set it to 0, and give 'dims' with their batch dimension");
  }
  spec.max_batch_size = config.max_batch_size();
  if (spec.max_batch_size > 0 || !free_batch) return absl::OkStatus();
  for (std::vector<TensorSpec>* tensors : {&spec.inputs, &spec.outputs}) {
    for (TensorSpec& tensor : *tensors) tensor.dims.insert(tensor.dims.begin(), -1);
  }
  return absl::OkStatus();
}

Status Reconcile(const ModelConfig& config, ModelSpec& spec) {
  if (config.model_transaction_policy().decoupled()) {
    return Unimplemented(
        "'model_transaction_policy.decoupled' is set, but the model gives one answer to a request; "
        "remove it");
  }
  SWIZZLE_RETURN_IF_ERROR(SettleBatchDimension(config, spec));
  SWIZZLE_RETURN_IF_ERROR(MatchTensors(config.input(), spec.inputs));
  SWIZZLE_RETURN_IF_ERROR(MatchTensors(config.output(), spec.outputs));
  SWIZZLE_RETURN_IF_ERROR(ApplyParameters(config, spec));
  return ApplyScheduling(config, spec);
}

// What a file says of a tensor may be for clients alone; they are told.
template <typename Tensor>
const Tensor* FindTensor(const google::protobuf::RepeatedPtrField<Tensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, [](const Tensor& tensor) { return tensor.name(); });
  return found == tensors.end() ? nullptr : &*found;
}

void FillQueuePolicy(const QueuePolicy& policy, inference::ModelQueuePolicy& filled) {
  filled.set_max_queue_size(static_cast<uint32_t>(policy.max_requests));
  filled.set_allow_timeout_override(policy.allow_timeout_override);
  if (policy.delays_late) filled.set_timeout_action(inference::ModelQueuePolicy::DELAY);
  if (policy.default_timeout != absl::InfiniteDuration()) {
    filled.set_default_timeout_microseconds(absl::ToInt64Microseconds(policy.default_timeout));
  }
}

void FillDynamicBatching(const ModelSpec& spec, inference::ModelDynamicBatching& batching) {
  for (const int64_t size : spec.preferred_batch_sizes) batching.add_preferred_batch_size(static_cast<int32_t>(size));
  batching.set_max_queue_delay_microseconds(absl::ToInt64Microseconds(spec.max_queue_delay));
  FillQueuePolicy(spec.queue_policy, *batching.mutable_default_queue_policy());
  if (spec.priority_levels == 1 && spec.level_policies.empty()) return;
  batching.set_priority_levels(static_cast<uint64_t>(spec.priority_levels));
  batching.set_default_priority_level(static_cast<uint64_t>(spec.default_priority));
  for (const auto& [level, policy] : spec.level_policies) {
    FillQueuePolicy(policy, (*batching.mutable_priority_queue_policy())[static_cast<uint64_t>(level)]);
  }
}

void FillInstances(const ModelSpec& spec, const ModelConfig& given, inference::ModelInstanceGroup& group) {
  group.set_count(spec.instance_count);
  if (spec.instance_kind != InstanceKind::kGpu) return group.set_kind(inference::ModelInstanceGroup::KIND_CPU);
  group.set_kind(inference::ModelInstanceGroup::KIND_GPU);
  for (const int gpu : NamedGpus(given)) group.add_gpus(gpu);
}

// The specification of a model of which nothing is known but what the file says.
StatusOr<ModelSpec> SpecOfFile(const ModelConfig& config, std::string_view name, int64_t version,
                               std::string_view platform, std::string_view backend) {
  ModelSpec spec;
  spec.name = name;
  spec.version = version;
  spec.platform = platform;
  spec.backend = backend;
  spec.max_batch_size = config.max_batch_size();
  spec.decoupled = config.model_transaction_policy().decoupled();
  SWIZZLE_ASSIGN_OR_RETURN(spec.inputs, SpecsOf(config.input()));
  SWIZZLE_ASSIGN_OR_RETURN(spec.outputs, SpecsOf(config.output()));
  SWIZZLE_RETURN_IF_ERROR(Annotate(ApplyDefaults(config.input(), {}, spec), "config.pbtxt"));
  SWIZZLE_RETURN_IF_ERROR(Annotate(ApplyScheduling(config, spec), "config.pbtxt"));
  return spec;
}

}  // namespace

std::string PlatformOf(std::string_view container) { return Concat("swizzle_", container); }

StatusOr<ModelSpec> IdentitySpec(const ModelConfig& config, std::string_view name, int64_t version) {
  SWIZZLE_CHECK(IsIdentity(config));
  return SpecOfFile(config, name, version, PlatformOf("identity"), "identity");
}

StatusOr<ModelSpec> EnsembleSpec(const ModelConfig& config, std::string_view name, int64_t version) {
  SWIZZLE_CHECK(IsEnsemble(config));
  return SpecOfFile(config, name, version, "ensemble", "");
}

std::vector<EnsembleStep> StepsOf(const ModelConfig& config) {
  std::vector<EnsembleStep> steps;
  for (const auto& step : config.ensemble_scheduling().step()) {
    steps.push_back({.model = step.model_name(),
                     .version = std::max<int64_t>(step.model_version(), 0),
                     .inputs = {step.input_map().begin(), step.input_map().end()},
                     .outputs = {step.output_map().begin(), step.output_map().end()}});
  }
  return steps;
}

std::map<std::string, DeclaredPort> DeclaredPorts(const std::optional<ModelConfig>& config) {
  std::map<std::string, DeclaredPort> ports;
  if (!config) return ports;
  const auto add = [&](const StatusOr<std::vector<TensorSpec>>& specs) {
    if (!specs.ok()) return;
    for (const TensorSpec& spec : *specs) {
      Shape shape = spec.dims;
      if (config->max_batch_size() > 0) shape.insert(shape.begin(), -1);
      ports[spec.name] = {spec.dtype, std::move(shape)};
    }
  };
  add(SpecsOf(config->input()));
  add(SpecsOf(config->output()));
  for (const inference::ModelInput& input : config->input()) {
    if (input.optional() && ports.contains(input.name())) ports[input.name()].is_optional = true;
  }
  return ports;
}

StatusOr<ModelSpec> ConfigureSpec(const ModelConfig& config, ModelSpec derived, const InputDefaults& defaults) {
  SWIZZLE_RETURN_IF_ERROR(Annotate(Reconcile(config, derived), "config.pbtxt"));
  SWIZZLE_RETURN_IF_ERROR(Annotate(ApplyDefaults(config.input(), defaults, derived), "config.pbtxt"));
  return derived;
}

void PlaceOn(InstanceKind kind, int device_count, int cpu_executors, ModelSpec& spec) {
  constexpr int kExecutorsOfGpu = 2;
  spec.instance_kind = kind;
  spec.device_count = device_count;
  if (spec.instances_given) return;
  if (kind == InstanceKind::kCpu) spec.instance_count = cpu_executors;
  const auto are_ids = [](const TensorSpec& input) {
    return input.dtype == DType::kInt64 || input.dtype == DType::kInt32;
  };
  const bool copies_little = spec.max_batch_tokens > 0 || std::ranges::all_of(spec.inputs, are_ids);
  if (kind == InstanceKind::kGpu && !copies_little) spec.instance_count = kExecutorsOfGpu;
}

ModelConfig ConfigOf(const ModelSpec& spec, const ModelConfig& given) {
  ModelConfig config;
  config.set_name(spec.name);
  config.set_platform(spec.platform);
  config.set_backend(spec.backend);
  config.set_max_batch_size(static_cast<int32_t>(spec.max_batch_size));
  for (const TensorSpec& tensor : spec.inputs) {
    FillTensor(tensor, *config.add_input());
    const inference::ModelInput* const its = FindTensor(given.input(), tensor.name);
    if (its != nullptr) config.mutable_input()->rbegin()->set_format(its->format());
  }
  for (const TensorSpec& tensor : spec.outputs) {
    FillTensor(tensor, *config.add_output());
    const inference::ModelOutput* const its = FindTensor(given.output(), tensor.name);
    if (its != nullptr) config.mutable_output()->rbegin()->set_label_filename(its->label_filename());
  }
  if (given.has_ensemble_scheduling()) {
    *config.mutable_ensemble_scheduling() = given.ensemble_scheduling();
  } else {
    FillInstances(spec, given, *config.add_instance_group());
    if (spec.dynamic_batching) FillDynamicBatching(spec, *config.mutable_dynamic_batching());
  }
  if (spec.decoupled) config.mutable_model_transaction_policy()->set_decoupled(true);
  *config.mutable_parameters() = given.parameters();
  *config.mutable_model_warmup() = given.model_warmup();
  if (spec.cache_responses) config.mutable_response_cache()->set_enable(true);
  if (given.has_model_metrics()) *config.mutable_model_metrics() = given.model_metrics();
  return config;
}

}  // namespace swizzle
