#include "server/model/model_facts.h"

#include "server/model/layer_tally.h"

namespace swizzle {
namespace {

void DescribePlan(const PlanReport& report, ModelFacts& facts) {
  facts.device_bytes = report.device_bytes;
  facts.properties.insert({
      {"swizzle_dense_bytes", std::to_string(report.dense_bytes)},
      {"swizzle_stored_bytes", std::to_string(report.stored_bytes)},
      {"swizzle_device_bytes", std::to_string(report.device_bytes)},
      {"swizzle_threads", std::to_string(report.threads)},
      {"swizzle_micro_batch", std::to_string(report.micro_batch)},
  });
}

void DescribeRegions(const regions::RegionalProgram& regional, const std::string& reason, int threads,
                     ModelFacts& facts) {
  facts.device_bytes = regional.weight_bytes();
  facts.properties.insert({
      {"swizzle_fallback", regional.regions.empty() ? "all" : "parts"},
      {"swizzle_fallback_reason", reason},
      {"swizzle_fallback_nodes", regional.OperatorCounts()},
      {"swizzle_regions", std::to_string(regional.region_count())},
      {"swizzle_stored_bytes", std::to_string(facts.stored_bytes)},
      {"swizzle_threads", std::to_string(threads)},
  });
  if (const std::string zeros = regional.ZerosText(); !zeros.empty()) facts.properties["swizzle_zeros"] = zeros;
  if (regional.on_device != nullptr) {
    facts.properties["swizzle_device_nodes"] = std::to_string(regional.device_nodes());
  } else if (!regional.not_on_device.empty()) {
    facts.properties["swizzle_not_on_gpu"] = regional.not_on_device;
  }
}

}  // namespace

ModelFacts FactsOf(std::span<const CompiledModel> models, int threads) {
  const CompiledModel& model = models.front();
  ModelFacts facts;
  LayerTally tally;
  const auto plans = model.plans();
  for (const auto& plan : plans) tally.Add(plan->report());
  if (model.regional() != nullptr) {
    facts.dense_bytes = facts.stored_bytes = model.regional()->program->weight_bytes();
  }
  if (!plans.empty()) tally.Describe(facts);
  if (model.regional() != nullptr) {
    DescribeRegions(*model.regional(), model.reason(), threads, facts);
  } else {
    DescribePlan(plans.front()->report(), facts);
  }
  facts.properties["swizzle_device"] = model.device_name();
  facts.devices.clear();
  for (const CompiledModel& each : models) facts.devices.emplace_back(each.device());
  facts.device = facts.devices.front();
  if (models.size() > 1) facts.device = facts.device.substr(0, facts.device.find(':'));
  return facts;
}

}  // namespace swizzle
