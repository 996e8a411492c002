#include "model_loader/plan/weight_facts.h"

#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle {

WeightFacts::WeightFacts(const Network& network) : position_limit(network.LookupLimit(-1)) {
  for (const Layer& layer : network.layers) {
    patterns.push_back(layer.weight < 0 ? 0 : PatternHash(network.weights[layer.weight]));
  }
  for (const NetworkPort& port : network.inputs) {
    id_limits.push_back(port.value == -1 ? 0 : network.LookupLimit(port.value));
  }
}

}  // namespace swizzle
