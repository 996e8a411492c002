#include "model_loader/plan/weight_facts.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "model_loader/network/shared_weights.h"
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

WeightFacts WeightFacts::None(const Network& network) {
  WeightFacts none;
  none.patterns.resize(network.layers.size());
  none.id_limits.resize(network.inputs.size());
  return none;
}

uint64_t ContentHash(const Network& network) {
  uint64_t hash = 0;
  for (const Layer& layer : network.layers) {
    const uint64_t numbers[] = {static_cast<uint64_t>(layer.op),
                                layer.weight < 0 ? 0 : WeightHash(network.weights[layer.weight])};
    hash = XXH3_64bits_withSeed(numbers, sizeof(numbers), hash);
  }
  return hash;
}

}  // namespace swizzle
