// What a plan reports of its layers.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_LAYER_REPORTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_LAYER_REPORTS_H_

#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/plan/choose/kernel_choice.h"
#include "model_loader/plan/run/plan_report.h"

namespace swizzle {

// One a layer, with all that is known before kernels are chosen. The network still has its weights.
std::vector<LayerReport> DescribeLayers(const Network& network, const LayerCandidates& candidates);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_LAYER_REPORTS_H_
