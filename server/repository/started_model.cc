#include "server/repository/started_model.h"

#include <cstdint>
#include <string>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/batching/cached_batcher.h"
#include "server/config/model_config.h"
#include "server/config/served_spec.h"
#include "server/telemetry/logging.h"

namespace swizzle {

void LogNotices(std::string_view model, std::span<const ConfigNotice> notices) {
  for (const ConfigNotice& notice : notices) {
    Log(LogLevel::kInfo, "field of config.pbtxt changes nothing",
        {{"model", std::string(model)}, {"field", notice.field}, {"why", notice.why}});
  }
}

void LogConfigNotices(std::string_view model, const inference::ModelConfig& config, const RepositoryOptions& options) {
  std::vector<ConfigNotice> notices = NoticesOf(config);
  if (config.response_cache().enable() && options.response_cache == nullptr) {
    notices.push_back({"response_cache.enable", "the server keeps no answers; start it with --response-cache-bytes"});
  }
  LogNotices(model, notices);
}

Status CheckTensorNames(const ModelSpec& spec) {
  for (const auto& tensor : spec.inputs) SWIZZLE_RETURN_IF_ERROR(CheckName(tensor.name, "an input"));
  for (const auto& tensor : spec.outputs) SWIZZLE_RETURN_IF_ERROR(CheckName(tensor.name, "an output"));
  return absl::OkStatus();
}

std::shared_ptr<ServingModel> StartServing(std::shared_ptr<Model> model, const inference::ModelConfig& config,
                                           absl::Duration load_time, const LoadingPlace& place) {
  std::shared_ptr<ServingModel> serving = place.retirement.NewModel();
  serving->config_bytes = ConfigOf(model->spec(), config).SerializeAsString();
  serving->metrics = place.metrics.ForModel(model->spec(), *model->facts(), load_time);
  serving->model = std::move(model);
  return serving;
}

void KeepAnswers(const LoadingPlace& place, ServingModel& serving) {
  if (!serving.model->spec().cache_responses || place.options.response_cache == nullptr) return;
  serving.batcher = NewCachedBatcher(std::move(serving.batcher), place.options.response_cache, *place.options.clock,
                                     serving.metrics.get());
}

void LogLoaded(const Model& model, absl::Duration load_time) {
  const ModelSpec& spec = model.spec();
  const std::shared_ptr<const ModelFacts> facts = model.facts();
  int layers = 0;
  std::string kernels;
  for (const ModelFacts::KernelUse& use : facts->kernels) {
    layers += use.layers;
    kernels += Concat(kernels.empty() ? "" : ",", use.kernel, ":", use.layers);
  }
  Log(LogLevel::kInfo, "model loaded",
      {{"model", spec.name},
       {"version", spec.version},
       {"platform", spec.platform},
       {"max_batch_size", spec.max_batch_size},
       {"device", facts->device},
       {"instances", spec.executors()},
       {"layers", layers},
       {"sparsity", facts->sparsity},
       {"dense_bytes", facts->dense_bytes},
       {"stored_bytes", facts->stored_bytes},
       {"dense_fallback_layers", facts->dense_fallback_layers},
       {"timed_now", facts->timed_now},
       {"timed_before", facts->timed_before},
       {"load_ms", absl::ToInt64Milliseconds(load_time)},
       {"kernels", kernels}});
}

}  // namespace swizzle
