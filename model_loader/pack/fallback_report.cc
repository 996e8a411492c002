#include "model_loader/pack/fallback_report.h"

#include <nlohmann/json.hpp>

namespace swizzle::pack {

namespace {

nlohmann::ordered_json RegionsArray(const regions::RegionalProgram& regional) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const auto& region : regional.regions) {
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    const std::shared_ptr<const Plan> plan = region->plan();
    for (const LayerReport& layer : plan->report().layers) {
      layers.push_back({{"name", layer.name},
                        {"op", layer.op},
                        {"sparsity", layer.sparsity()},
                        {"format", FormatName(layer.format)},
                        {"kernels", layer.kernels}});
    }
    array.push_back({{"layers", std::move(layers)}});
  }
  return array;
}

}  // namespace

std::string FallbackText(const FallbackModel& model, const regions::RegionalProgram& regional) {
  const std::string why = Concat("\nthe optimised plan does not take the model whole: ", model.reason, "\n");
  if (!regional.regions.empty())
    return Concat(regional.Text(), " on the fallback executor: ", regional.program->OperatorCounts(), why);
  return Concat("all ", model.program->graph().nodes.size(),
                " nodes run on the fallback executor, one by one and dense: ", model.program->OperatorCounts(), why,
                "no region of it is planned: ", regional.unplanned, "\n");
}

nlohmann::ordered_json FallbackObject(const std::string& name, const FallbackModel& model,
                                      const regions::RegionalProgram& regional) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const Node& node : model.program->graph().nodes) nodes.push_back({{"name", node.name}, {"op", node.op}});
  return {{"model", name},
          {"container", model.container},
          {"producer", model.program->graph().producer},
          {"opset", model.program->graph().opset},
          {"fallback", true},
          {"fallback_reason", model.reason},
          {"weight_bytes", model.program->weight_bytes()},
          {"fallback_nodes", std::move(nodes)},
          {"regions", RegionsArray(regional)},
          {"refusals", regional.refusals},
          {"planned_layers", regional.layers()},
          {"interpreted_nodes", regional.program->interpreted_nodes()}};
}

std::string FallbackJson(const std::string& name, const FallbackModel& model,
                         const regions::RegionalProgram& regional) {
  return FallbackObject(name, model, regional).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace swizzle::pack
