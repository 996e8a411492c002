// Layers that kernels do together although a model says them apart. Applied to a plan's own copy of a network, so that
// packed files know nothing of it.
//
// - A function (GELU, HardSwish, ...) becomes the end of the epilogue of the convolution or linear layer that it alone
//   reads: what it reads is then still in registers, or in the cache.
// - What only quantises an input of the network, and alone reads it, lets plans store the input as those whole numbers.
// - The products that make an attention's queries, keys and values from one activation become one product, whose
//   columns the attention reads apart, where their weights are in one format and it can stack their rows. Queries and
//   keys that are turned by one table are turned together.
// - Neighbouring operands of a Concat that are all of one value, cut by Slices, are that value.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_FUSE_LAYERS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_FUSE_LAYERS_H_

#include "kernels/backend/backend.h"
#include "model_loader/network/network.h"

namespace swizzle {

// A function ends a depthwise layer where that only sums, and the function takes zero to zero, so that rows of every
// layout have it.
//
// Fused layers keep the name of the first of them and stand where it stood; values in between are made no more, and
// weights that went into another are empty. A second call changes nothing. REQUIRES: a validated network.
void FuseLayers(Network& network);
// What only the host's rows do: functions end depthwise layers, and sparse products and depthwise layers of whole
// numbers whose value they round, the latter behind what moves it, too. Of these what rounds is left, as a layer that
// only quantises, so that the layers may end in bytes.
void FuseHostFunctions(Network& network);
// As plans for the backend have the layers: the one and, where its memory is the host's, the other.
void FuseFor(Backend& backend, Network& network);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_FUSE_LAYERS_H_
