#include "model_loader/calibration/graph_weights.h"

#include <algorithm>
#include <unordered_map>

namespace swizzle {
namespace {

struct Usage {
  std::vector<std::string> nodes;
  bool as_weight_only = true;
  bool outputs_last = true, both_ways = false;  // as of OnnxWeight
};

bool HasOutputsFirst(const Node& node) {
  const auto turned = node.attributes.find("transB");
  return turned != node.attributes.end() && turned->second == Attribute(int64_t{1});
}

std::vector<Usage> UsagesIn(const Graph& graph) {
  std::vector<Usage> usages(graph.values.size());
  for (const Node& node : graph.nodes) {
    const bool multiplies = node.op == "MatMul" || node.op == "Gemm";
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      Usage& usage = usages[node.inputs[i]];
      const bool outputs_last = !HasOutputsFirst(node);
      if (usage.nodes.empty()) usage.outputs_last = outputs_last;
      usage.both_ways |= usage.outputs_last != outputs_last;
      usage.nodes.push_back(node.name);
      usage.as_weight_only &= multiplies && i == 1;
    }
  }
  for (const GraphOutput& output : graph.outputs) usages[output.value].as_weight_only = false;
  return usages;
}

}  // namespace

std::vector<NamedWeight> WeightsOf(const Graph& graph) {
  const std::vector<Usage> usages = UsagesIn(graph);
  std::vector<NamedWeight> weights;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const std::optional<Tensor>& constant = graph.values[i].constant;
    const Usage& usage = usages[i];
    if (!constant || constant->dtype != DType::kFloat32 || constant->shape.size() != 2) continue;
    if (!usage.as_weight_only || usage.nodes.empty()) continue;
    const auto elements = constant->floats();
    NamedWeight& named = weights.emplace_back();
    named.weight = {usage.nodes, constant->shape, usage.outputs_last, usage.both_ways};
    named.weight.names.push_back(graph.values[i].name);
    named.elements.assign(elements.begin(), elements.end());
    named.of_checkpoint = true;
  }
  return weights;
}

void SetWeights(const std::vector<NamedWeight>& weights, Graph& graph) {
  std::unordered_map<std::string, const NamedWeight*> by_name;
  for (const NamedWeight& named : weights) by_name[named.weight.names.back()] = &named;
  for (Value& value : graph.values) {
    const auto found = by_name.find(value.name);
    if (found != by_name.end()) std::ranges::copy(found->second->elements, value.constant->floats().begin());
  }
}

}  // namespace swizzle
