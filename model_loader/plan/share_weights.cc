#include "model_loader/plan/share_weights.h"

#include <map>

#include "model_loader/plan/weight_facts.h"

namespace swizzle {
namespace {

bool AreSame(const Problem& a, const Problem& b) {
  return static_cast<const Operator&>(a) == static_cast<const Operator&>(b) && a.input == b.input &&
         a.output == b.output && a.inputs_as == b.inputs_as;
}

}  // namespace

void ShareWeights(Network& network) {
  std::map<uint64_t, int> first;  // by content: a weight
  for (Layer& layer : network.layers) {
    if (layer.weight < 0 || network.weights[layer.weight].rows() == 0) continue;  // what was left out is no weight
    const auto [same, is_new] = first.try_emplace(WeightHash(network.weights[layer.weight]), layer.weight);
    if (is_new || same->second == layer.weight) continue;
    network.weights[layer.weight] = Weight{};
    layer.weight = same->second;
  }
}

std::vector<size_t> FirstOfAlike(const Network& network) {
  std::map<int, std::vector<size_t>> readers;  // by weight
  std::vector<size_t> first(network.layers.size());
  for (size_t i = 0; i < network.layers.size(); ++i) {
    first[i] = i;
    if (network.layers[i].weight < 0) continue;
    std::vector<size_t>& before = readers[network.layers[i].weight];
    const Problem problem = LayerProblem(network, network.layers[i], 1, 1);
    for (const size_t other : before) {
      if (first[i] != i || !AreSame(problem, LayerProblem(network, network.layers[other], 1, 1))) continue;
      first[i] = other;
    }
    if (first[i] == i) before.push_back(i);
  }
  return first;
}

}  // namespace swizzle
