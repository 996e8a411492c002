// Layers that read one weight: recurrent cells that an exporter has unrolled, Transformers whose layers are one. Free
// functions, pure but for what they are given.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_SHARED_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_SHARED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

// Of what the weight holds, bias and whole numbers included. REQUIRES: it is there.
uint64_t WeightHash(const Weight& weight);

// Puts a network's weights together, so that none is there twice. Single-owner.
class WeightCollection {
 public:
  // `weights`, empty as yet, outlives this.
  explicit WeightCollection(std::vector<Weight>& weights) : weights_(weights) {}

  // The index of this weight, or of an equal one that was added before, for which this one is dropped.
  int Add(Weight weight);

 private:
  std::vector<Weight>& weights_;
  std::map<uint64_t, int> known_;  // by WeightHash
};

// Layers whose weights are equal, biases and whole numbers included, name one of them from now on; weights that no
// layer names are gone.
void ShareWeights(Network& network);

// Each layer has a weight of its own from now on, so that it may be changed for this layer alone.
void UnshareWeights(Network& network);

// By layer: the first layer that names the same weight, to solve the same problem by it; itself where none does.
std::vector<size_t> FirstOfAlike(const Network& network);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_SHARED_WEIGHTS_H_
