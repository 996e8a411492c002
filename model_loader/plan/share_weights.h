// Layers that read one weight: recurrent cells that an exporter has unrolled, Transformers whose layers are one.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_SHARE_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_SHARE_WEIGHTS_H_

#include <cstddef>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

// Layers whose weights are equal, biases and whole numbers included, name one of them from now on; the others' are
// empty. For what plans are made of alone: elsewhere each layer has a weight of its own.
void ShareWeights(Network& network);

// By layer: the first layer that names the same weight, to solve the same problem by it; itself where none does.
std::vector<size_t> FirstOfAlike(const Network& network);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_SHARE_WEIGHTS_H_
