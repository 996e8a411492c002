// What a server says of a model besides its metadata: statistics and configuration.
#include <google/protobuf/text_format.h>

#include "client/wire_format.h"
#include "proto/message_json.h"

namespace swizzle::client {
namespace {

TimedCount FromWire(const inference::StatisticDuration& duration) {
  return {static_cast<int64_t>(duration.count()), absl::Nanoseconds(static_cast<int64_t>(duration.ns()))};
}

ModelStatistics FromWire(const inference::ModelStatistics& message) {
  ModelStatistics statistics;
  statistics.name = message.name();
  statistics.version = message.version();
  if (message.last_inference() > 0) {
    statistics.last_inference = absl::FromUnixMillis(static_cast<int64_t>(message.last_inference()));
  }
  statistics.rows = static_cast<int64_t>(message.inference_count());
  statistics.batches = static_cast<int64_t>(message.execution_count());
  const inference::InferStatistics& requests = message.inference_stats();
  statistics.success = FromWire(requests.success());
  statistics.fail = FromWire(requests.fail());
  statistics.queue = FromWire(requests.queue());
  statistics.input = FromWire(requests.compute_input());
  statistics.compute = FromWire(requests.compute_infer());
  statistics.output = FromWire(requests.compute_output());
  statistics.cache_hit = FromWire(requests.cache_hit());
  statistics.cache_miss = FromWire(requests.cache_miss());
  for (const auto& size : message.batch_stats()) {
    statistics.batch_sizes.push_back({static_cast<int64_t>(size.batch_size()), FromWire(size.compute_input()),
                                      FromWire(size.compute_infer()), FromWire(size.compute_output())});
  }
  for (const auto& memory : message.memory_usage()) {
    statistics.memory.push_back({memory.type(), memory.id(), static_cast<int64_t>(memory.byte_size())});
  }
  return statistics;
}

}  // namespace

std::vector<ModelStatistics> FromWire(const inference::ModelStatisticsResponse& message) {
  std::vector<ModelStatistics> models;
  for (const auto& model : message.model_stats()) models.push_back(FromWire(model));
  return models;
}

ModelConfig FromWire(const inference::ModelConfigResponse& message) {
  ModelConfig config;
  // It fails only where its output does, and a string never fails.
  static_cast<void>(google::protobuf::TextFormat::PrintToString(message.config(), &config.text));
  config.json = MessageJson(message.config());
  return config;
}

}  // namespace swizzle::client
