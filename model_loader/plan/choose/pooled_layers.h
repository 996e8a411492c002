// First layers that kernels compute together with the max pooling behind them.
//
// Such a kernel is a candidate of the convolution, whose output is stored `pooled` (kernels/base/storage.h): as the
// pooling's result. The pooling then has nothing left to do. Nothing converts such an output, so that the choice of
// layouts takes both or neither.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_POOLED_LAYERS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_POOLED_LAYERS_H_

#include "model_loader/network/network.h"
#include "model_loader/plan/choose/kernel_choice.h"

namespace swizzle {

// Whether what the layer makes is read by nothing but a max pooling whose result PooledExtent describes.
bool FeedsPooling(const Network& network, const Layer& layer);

// Gives such poolings a candidate that does nothing, for each way in which the layer before has its output pooled.
void AddPooledRenames(const Network& network, LayerCandidates& candidates);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_POOLED_LAYERS_H_
