#include "server/rpc/model_description.h"

#include <charconv>
#include <string>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

using TensorMetadata = inference::ModelMetadataResponse::TensorMetadata;

TensorMetadata DescribeTensor(const TensorSpec& spec, bool batched) {
  TensorMetadata tensor;
  tensor.set_name(spec.name);
  tensor.set_datatype(std::string(DTypeName(spec.dtype)));
  if (batched) tensor.add_shape(-1);
  tensor.mutable_shape()->Add(spec.wire_dims().begin(), spec.wire_dims().end());
  return tensor;
}

inference::StatisticDuration Duration(int64_t count, absl::Duration total) {
  inference::StatisticDuration duration;
  duration.set_count(static_cast<uint64_t>(count));
  duration.set_ns(static_cast<uint64_t>(absl::ToInt64Nanoseconds(total)));
  return duration;
}

inference::StatisticDuration Duration(const ModelStatisticsTotals::Stage& stage) {
  return Duration(stage.count, stage.total);
}

// `device`: "cpu", or "cuda:1" for the GPU that CUDA numbers 1.
inference::MemoryUsage WeightsOn(const std::string& device, int64_t bytes) {
  inference::MemoryUsage memory;
  memory.set_type(device == "cpu" ? "CPU" : "GPU");
  const size_t colon = device.find(':');
  int64_t id = 0;
  if (colon != std::string::npos) std::from_chars(device.data() + colon + 1, device.data() + device.size(), id);
  memory.set_id(id);
  memory.set_byte_size(static_cast<uint64_t>(bytes));
  return memory;
}

// As Triton names them.
const char* StateName(ModelState state) {
  if (state == ModelState::kLoading) return "LOADING";
  if (state == ModelState::kUnloading) return "UNLOADING";
  return state == ModelState::kReady ? "READY" : "UNAVAILABLE";
}

std::string ReasonOf(const ModelStatus& status) {
  if (status.state == ModelState::kUnloaded) return status.version > 0 ? "unloaded" : "not loaded";
  if (status.state == ModelState::kFailed) return std::string(status.status.message());
  if (status.reload.ok()) return "";
  return Concat("it serves as before, for loading it again failed: ", std::string(status.reload.message()));
}

}  // namespace

inference::ModelMetadataResponse DescribeModel(const Model& model, const std::vector<int64_t>& versions) {
  const ModelSpec& spec = model.spec();
  const bool batched = spec.max_batch_size > 0;
  inference::ModelMetadataResponse metadata;
  metadata.set_name(spec.name);
  metadata.set_platform(spec.platform);
  for (const int64_t version : versions) metadata.add_versions(std::to_string(version));
  for (const TensorSpec& input : spec.inputs) *metadata.add_inputs() = DescribeTensor(input, batched);
  for (const TensorSpec& output : spec.outputs) *metadata.add_outputs() = DescribeTensor(output, batched);
  const std::shared_ptr<const ModelFacts> facts = model.facts();
  metadata.mutable_properties()->insert(facts->properties.begin(), facts->properties.end());
  if (!spec.memory_note.empty()) (*metadata.mutable_properties())["swizzle_memory"] = spec.memory_note;
  return metadata;
}

inference::ModelStatistics DescribeStatistics(const Model& model, const ModelStatisticsTotals& totals) {
  inference::ModelStatistics statistics;
  statistics.set_name(model.spec().name);
  statistics.set_version(std::to_string(model.spec().version));
  statistics.set_last_inference(static_cast<uint64_t>(totals.last_inference_ms));
  statistics.set_inference_count(static_cast<uint64_t>(totals.inference_count));
  statistics.set_execution_count(static_cast<uint64_t>(totals.execution_count));

  inference::InferStatistics& requests = *statistics.mutable_inference_stats();
  *requests.mutable_success() = Duration(totals.success);
  *requests.mutable_fail() = Duration(totals.fail);
  *requests.mutable_queue() = Duration(totals.queue);
  *requests.mutable_compute_input() = Duration(totals.input);
  *requests.mutable_compute_infer() = Duration(totals.compute);
  *requests.mutable_compute_output() = Duration(totals.output);
  *requests.mutable_cache_hit() = Duration(totals.cache_hit);
  *requests.mutable_cache_miss() = Duration(totals.cache_miss);

  for (const ModelStatisticsTotals::BatchSize& size : totals.batches) {
    inference::InferBatchStatistics& batch = *statistics.add_batch_stats();
    batch.set_batch_size(static_cast<uint64_t>(size.rows));
    *batch.mutable_compute_input() = Duration(size.count, size.input);
    *batch.mutable_compute_infer() = Duration(size.count, size.compute);
    *batch.mutable_compute_output() = Duration(size.count, size.output);
  }

  const std::shared_ptr<const ModelFacts> facts = model.facts();
  for (const std::string& device : facts->devices) {
    *statistics.add_memory_usage() = WeightsOn(device, facts->device_bytes);
  }
  return statistics;
}

inference::RepositoryIndexResponse DescribeIndex(const std::vector<ModelStatus>& models, bool only_ready) {
  inference::RepositoryIndexResponse index;
  for (const ModelStatus& status : models) {
    if (only_ready && status.state != ModelState::kReady) continue;
    inference::RepositoryIndexResponse::ModelIndex& model = *index.add_models();
    // It may be that of any directory, and travels in a message, which holds UTF-8 alone.
    model.set_name(CheckName(status.name, "a model").ok() ? status.name : QuotedName(status.name));
    if (status.version > 0) model.set_version(std::to_string(status.version));
    model.set_state(StateName(status.state));
    model.set_reason(ReasonOf(status));
  }
  return index;
}

}  // namespace swizzle
