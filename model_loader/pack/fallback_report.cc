#include "model_loader/pack/fallback_report.h"

#include <nlohmann/json.hpp>

namespace swizzle::pack {

std::string FallbackText(const FallbackModel& model) {
  return Concat("all ", model.program->graph().nodes.size(),
                " nodes run on the fallback executor, one by one and dense: ", model.program->OperatorCounts(),
                "\nthe optimised plan does not take the model: ", model.reason, "\n");
}

nlohmann::ordered_json FallbackObject(const std::string& name, const FallbackModel& model) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const Node& node : model.program->graph().nodes) nodes.push_back({{"name", node.name}, {"op", node.op}});
  return {{"model", name},
          {"container", model.container},
          {"producer", model.program->graph().producer},
          {"opset", model.program->graph().opset},
          {"fallback", true},
          {"fallback_reason", model.reason},
          {"weight_bytes", model.program->weight_bytes()},
          {"fallback_nodes", std::move(nodes)}};
}

std::string FallbackJson(const std::string& name, const FallbackModel& model) {
  return FallbackObject(name, model).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace swizzle::pack
