#include "server/config/config_fields.h"

#include <algorithm>
#include <array>
#include <functional>

namespace swizzle {
namespace {

namespace pb = google::protobuf;
using enum FieldUse;

constexpr std::string_view kOnlyUnderTensorRt = "it describes a TensorRT engine; remove it";
constexpr std::string_view kRagged =
    "requests of other shapes share no batch, but for token sequences, which need no such field; remove it";
constexpr std::string_view kStagedAnyway = "what goes to a GPU is staged in pinned memory in any case";

constexpr auto kFields = std::to_array<ConfigField>({
    {"name", kServed, "has to be the directory's"},
    {"backend", kServed,
     "`swizzle`, or `onnxruntime` or `openvino`, which stand for the same; `identity` is a model without weights that "
     "answers its input"},
    {"platform", kServed,
     "what the server itself reports, such as `swizzle_onnx`, or `onnxruntime_onnx`; changes nothing, but that "
     "`ensemble` "
     "needs `ensemble_scheduling`"},
    {"version_policy", kServed, "which of the versions that are there are served; the latest where it does not say"},
    {"version_policy.latest", kServed, "those with the greatest numbers"},
    {"version_policy.latest.num_versions", kServed, "how many; 0 stands for 1"},
    {"version_policy.all", kServed, "each"},
    {"version_policy.specific", kServed, "those that are named"},
    {"version_policy.specific.versions", kServed, "their numbers; one of them has to be there"},
    {"max_batch_size", kServed,
     "the most rows that run together, up to 4096; without `dynamic_batching` beside it, requests then run one by one, "
     "as in Triton; 0: shapes are exactly the model's"},
    {"input", kServed, "all of the model's inputs, or none, in the order that requests see"},
    {"input.name", kServed, "checked against the model"},
    {"input.data_type", kServed, "checked against the model"},
    {"input.format", kNoEffect, "clients are told; what the model gets is as `dims` say"},
    {"input.dims", kServed,
     "without the batch dimension where `max_batch_size` is above 0; a number fixes what the model leaves open"},
    {"input.reshape", kServed, "the model gets the same elements in another shape than `dims`, which requests have"},
    {"input.reshape.shape", kServed,
     "the model's dimensions; its -1s stand for those of `dims`, in their order, and elements between them are as "
     "many"},
    {"input.is_shape_tensor", kRefused, kOnlyUnderTensorRt},
    {"input.allow_ragged_batch", kRefused, kRagged},
    {"input.optional", kServed,
     "requests may leave it out: it is then the initializer of the same name that an ONNX model has beside its input, "
     "of one row; without one the model is refused"},
    {"input.is_non_linear_format_io", kRefused, kOnlyUnderTensorRt},
    {"output", kServed, "as `input`"},
    {"output.name", kServed, "checked against the model"},
    {"output.data_type", kServed, "checked against the model"},
    {"output.dims", kServed, "as `input.dims`"},
    {"output.label_filename", kServed,
     "a file in the model's directory, or below it, with a label a line: what classes are called in answers with "
     "`classification`; if it is not there, which is logged, they have no labels"},
    {"output.reshape", kServed, "clients get the model's elements in the shape that `dims` say"},
    {"output.reshape.shape", kServed, "as `input.reshape.shape`"},
    {"output.is_shape_tensor", kRefused, kOnlyUnderTensorRt},
    {"output.is_non_linear_format_io", kRefused, kOnlyUnderTensorRt},
    {"batch_input", kRefused, kRagged},
    {"batch_output", kRefused, kRagged},
    {"instance_group", kServed, "executors of the model"},
    {"instance_group.name", kNoEffect, "executors have no names"},
    {"instance_group.count", kServed,
     "executors that run batches side by side, on each GPU, or sharing out the processors"},
    {"instance_group.kind", kServed,
     "`KIND_CPU`, `KIND_GPU` or `KIND_AUTO`, the same in all groups; `KIND_MODEL` stands for `KIND_AUTO`, and where "
     "the server has no GPU, `KIND_GPU` for `KIND_CPU`, which is logged"},
    {"instance_group.gpus", kServed,
     "the GPUs that the model runs on, by CUDA's numbers; without it, all that the server has, which --device says. "
     "One that the server does not have fails the load. All groups name GPUs, or none does, and each GPU gets as many "
     "executors"},
    {"instance_group.profile", kNoEffect, "profiles are TensorRT's; all shapes that the model takes are served"},
    {"instance_group.rate_limiter", kNoEffect, "resources are not counted, as Triton counts none unless told to"},
    {"instance_group.passive", kRefused, "every executor takes requests; remove the group"},
    {"instance_group.secondary_devices", kNoEffect, "there are GPUs and processors alone"},
    {"instance_group.host_policy", kNoEffect, "where threads run is said by --threads and --pin-threads"},
    {"default_model_filename", kServed,
     "the file that is the model, in its version's directory, in place of `model.onnx` and the like; no path"},
    {"cc_model_filenames", kNoEffect, "one file is served on whatever GPU: that of `default_model_filename`"},
    {"metric_tags", kNoEffect, "metrics have labels of their own"},
    {"dynamic_batching", kServed, "the server forms batches of several requests"},
    {"dynamic_batching.preferred_batch_size", kServed, "sizes that are not worth a longer wait"},
    {"dynamic_batching.max_queue_delay_microseconds", kServed,
     "how long a request may wait for others to join its batch"},
    {"dynamic_batching.preserve_ordering", kNoEffect,
     "a stream's answers come in the order of its requests in any case"},
    {"dynamic_batching.priority_levels", kServed,
     "levels that requests choose from by the parameter `priority`, 1 being served first, up to 100; a level that nine "
     "batches in a row passed over begins the next, so that none starves; 0: 1"},
    {"dynamic_batching.default_priority_level", kServed, "the level of requests without `priority`, or with 0"},
    {"dynamic_batching.default_queue_policy", kServed, "limits of the queue, of each level of priority by itself"},
    {"dynamic_batching.default_queue_policy.timeout_action", kServed,
     "what becomes of a request whose time is over: with `REJECT` it ends, with `DELAY` it waits behind the others of "
     "its "
     "level, until its own deadline"},
    {"dynamic_batching.default_queue_policy.default_timeout_microseconds", kServed,
     "a request that has not started by then ends in DEADLINE_EXCEEDED, or is late; 0: 10 s more than the delay, or "
     "with `DELAY` never"},
    {"dynamic_batching.default_queue_policy.allow_timeout_override", kServed,
     "whether a request's parameter `timeout` may shorten that"},
    {"dynamic_batching.default_queue_policy.max_queue_size", kServed,
     "requests that may wait; further ones end in RESOURCE_EXHAUSTED; 0: 1024; see the parameters for rows, bytes and "
     "time"},
    {"dynamic_batching.priority_queue_policy", kServed, "the same for a level of priority, in place of the default's"},
    {"sequence_batching", kRefused,
     "the server keeps nothing from one request to the next; give the model its state as an input, and have clients "
     "send it again"},
    {"ensemble_scheduling", kServed,
     "a model made of others, whose `input` and `output` are all listed; what it runs on is theirs, and so are "
     "`instance_group`, `model_warmup` and `default_model_filename`"},
    {"ensemble_scheduling.step", kServed,
     "a model of the repository, which runs as soon as what it reads is there; while it is loaded again, the ensemble "
     "goes on with what served before, and without it the ensemble serves not"},
    {"ensemble_scheduling.step.model_name", kServed, "has to serve, or be one that can be loaded"},
    {"ensemble_scheduling.step.model_version", kServed, "-1: the latest that serves"},
    {"ensemble_scheduling.step.input_map", kServed,
     "for each input of the model, but for optional ones, the tensor that it gets: an input of the ensemble, or a "
     "tensor that a step makes"},
    {"ensemble_scheduling.step.output_map", kServed,
     "for outputs of the model, what the tensor is called: an output of the ensemble, or what other steps read"},
    {"ensemble_scheduling.step.model_namespace", kNoEffect, "a model's name is the only one of all repositories"},
    {"ensemble_scheduling.max_inflight_requests", kNoEffect,
     "the queues of the steps are bounded, and so is what requests hold of the memory"},
    {"optimization", kServed, "holds fields that say how, not what, is computed"},
    {"optimization.graph", kNoEffect, "graphs are optimised in any case, without changing what they compute"},
    {"optimization.priority", kNoEffect, "models take turns"},
    {"optimization.cuda", kNoEffect, "work on GPUs is recorded as CUDA graphs in any case"},
    {"optimization.execution_accelerators", kNoEffect,
     "kernels are the server's own, for each layer the one that was measured fastest; for lower precision there is the "
     "parameter `precision`"},
    {"optimization.input_pinned_memory", kNoEffect, kStagedAnyway},
    {"optimization.output_pinned_memory", kNoEffect, kStagedAnyway},
    {"optimization.gather_kernel_buffer_threshold", kNoEffect, "requests are gathered once, wherever they are"},
    {"optimization.eager_batching", kNoEffect, "batches are formed as soon as an executor is idle"},
    {"parameters", kServed, "see below"},
    {"model_warmup", kServed,
     "requests that each executor runs before the model is ready; one that fails, fails the load. Of sizes that the "
     "model leaves open, theirs are the first to be tried when it is planned"},
    {"model_warmup.name", kServed, "what errors call the sample"},
    {"model_warmup.batch_size", kServed, "so many of it run together, as far as the model's batches go; 0: 1"},
    {"model_warmup.inputs", kServed,
     "all of the model's, with `dims` as requests have them but for the batch dimension: `zero_data`, `random_data` "
     "(numbers from -1 to 1, whole ones 0 and 1, letters), or `input_data_file`, raw bytes in the model's directory "
     "`warmup`"},
    {"model_warmup.count", kServed, "how often it runs; 0: 1"},
    {"model_operations", kNoEffect,
     "no library is loaded; a model that needs operators of one is refused by their name"},
    {"model_transaction_policy", kServed, "holds the field below"},
    {"model_transaction_policy.decoupled", kServed,
     "requests have any number of answers, which ModelStreamInfer alone can carry; for `identity`, whose "
     "`repeat_count` "
     "says how many"},
    {"model_repository_agents", kRefused, "files are loaded as they lie there; remove it, and prepare them before"},
    {"response_cache", kServed, "holds the field below"},
    {"response_cache.enable", kServed,
     "answers are kept, within --response-cache-bytes of the whole server, and given to requests with the same inputs, "
     "which enter no queue; without the flag that is logged, and nothing is kept"},
    {"runtime", kNoEffect, "it names a library of Triton's"},
    {"model_metrics", kServed, "holds the fields below"},
    {"model_metrics.metric_control", kServed, "histograms of the model, each with edges of its own"},
    {"model_metrics.metric_control.metric_identifier", kServed, "holds the field below"},
    {"model_metrics.metric_control.metric_identifier.family", kServed,
     "a histogram of [the metrics](METRICS.md), or `nv_inference_first_response_histogram_ms`, which stands for "
     "`swizzle_request_duration_seconds` in milliseconds"},
    {"model_metrics.metric_control.histogram_options", kServed, "holds the field below"},
    {"model_metrics.metric_control.histogram_options.buckets", kServed,
     "upper edges, ascending, up to 64; a version that is replaced keeps those that it was first loaded with"},
});

const ConfigField* FindRow(std::string_view path) {
  const auto row = std::ranges::find(kFields, path, &ConfigField::path);
  return row == kFields.end() ? nullptr : &*row;
}

// Calls `visit` for each row whose field is set, until it fails; nothing below a row that is not served. `prefix` is
// the path to `message`. A field without a row is refused.
Status Visit(const pb::Message& message, const std::string& prefix,
             const std::function<Status(const ConfigField&)>& visit) {
  const pb::Reflection& reflection = *message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const std::string path = Concat(prefix, field->name());
    const ConfigField* const row = FindRow(path);
    if (row == nullptr) return Unimplemented("the field '", path, "' is not served; remove it");
    SWIZZLE_RETURN_IF_ERROR(visit(*row));
    const bool is_message = field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE && !field->is_map();
    if (row->use != kServed || !is_message) continue;
    if (!field->is_repeated()) {
      SWIZZLE_RETURN_IF_ERROR(Visit(reflection.GetMessage(message, field), path + ".", visit));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      SWIZZLE_RETURN_IF_ERROR(Visit(reflection.GetRepeatedMessage(message, field, i), path + ".", visit));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const ConfigField> ConfigFields() { return kFields; }

Status RefuseFields(const pb::Message& config) {
  return Visit(config, "", [](const ConfigField& row) {
    if (row.use != kRefused) return Status();
    return Unimplemented("the field '", row.path, "' is not served: ", row.meaning);
  });
}

std::vector<ConfigNotice> FieldsWithoutEffect(const pb::Message& config) {
  std::vector<ConfigNotice> notices;
  const Status visited = Visit(config, "", [&](const ConfigField& row) {
    const bool is_new = std::ranges::find(notices, row.path, &ConfigNotice::field) == notices.end();
    if (row.use == kNoEffect && is_new) notices.push_back({std::string(row.path), std::string(row.meaning)});
    return Status();
  });
  SWIZZLE_CHECK(visited.ok());  // fields without a row were refused
  return notices;
}

}  // namespace swizzle
