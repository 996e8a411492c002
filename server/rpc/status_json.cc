#include "server/rpc/status_json.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "proto/message_json.h"
#include "server/rpc/model_description.h"

namespace swizzle {
namespace {

using nlohmann::json;

json DevicesJson(const Backend& main, std::span<Backend* const> gpus) {
  json devices = json::array();
  for (const Backend* const gpu : gpus) {
    devices.push_back({{"name", gpu->name()}, {"device", gpu->device_name()}, {"features", gpu->features_text()}});
  }
  if (!gpus.empty()) return devices;
  devices.push_back({{"name", main.name()}, {"device", main.device_name()}, {"features", main.features_text()}});
  return devices;
}

// What a version that serves is: null where it does not.
json ServingJson(const ModelRepository& repository, const ModelStatus& status) {
  if (status.state != ModelState::kReady) return nullptr;
  const StatusOr<std::shared_ptr<ServingModel>> serving = repository.Find(status.name, std::to_string(status.version));
  if (!serving.ok()) return nullptr;
  const ModelSpec& spec = (*serving)->model->spec();
  json its = json::parse(MessageJson(DescribeModel(*(*serving)->model, {status.version})));
  its["max_batch_size"] = spec.max_batch_size;
  its["executors"] = spec.instance_count;
  return its;
}

}  // namespace

std::string StatusJson(const StatusOr<const ModelRepository*>& repository, const Backend& main,
                       std::span<Backend* const> gpus) {
  json status = {{"version", SWIZZLE_VERSION}, {"devices", DevicesJson(main, gpus)}, {"models", json::array()}};
  status["ready"] = repository.ok() && (*repository)->readiness().ready;
  if (repository.ok()) {
    for (const ModelStatus& model : (*repository)->List()) {
      json its = json::parse(MessageJson(DescribeIndex({model}, false).models(0)));
      its["serving"] = ServingJson(**repository, model);
      status["models"].push_back(std::move(its));
    }
  }
  return status.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace swizzle
