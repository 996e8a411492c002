// What plans go on knowing of a network's weights once these are dropped.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_WEIGHT_FACTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_WEIGHT_FACTS_H_

#include <cstdint>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

struct WeightFacts {
  explicit WeightFacts(const Network& network);
  // As if there were no weights: of a plan that nothing is measured for, and whose requests nobody checks.
  static WeightFacts None(const Network& network);

  std::vector<uint64_t> patterns;  // PatternHash, by layer; 0 where it has no weight
  std::vector<int64_t> id_limits;  // Plan::IdLimit, by input
  int64_t position_limit = 0;      // Plan::PositionLimit

 private:
  WeightFacts() = default;
};

// Of what the layers' weights hold, biases and whole numbers included. Networks of one hash have the same weights in
// the same places, whatever the planes of their values. REQUIRES: the weights are there.
uint64_t ContentHash(const Network& network);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_WEIGHT_FACTS_H_
