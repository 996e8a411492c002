// The kernel of every layer of a plan, from measured times: joint with the layouts between layers (layout_choice.h),
// over all measured batch sizes, and never slower than dense kernels alone.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_KERNEL_CHOICE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_KERNEL_CHOICE_H_

#include <functional>
#include <vector>

#include "model_loader/network/network.h"
#include "model_loader/plan/choose/candidates.h"

namespace swizzle {

// Microseconds per measured batch size of converting a value; empty where no kernel does.
using ConversionTimes = std::function<StatusOr<std::vector<double>>(const NetworkValue&, Layout from, Layout to)>;

// The index of each layer's candidate. Every batch size weighs the same; but where that makes a plan slower at one of
// them than the best of dense kernels alone, that size weighs more and more until it no longer is, and in the end the
// dense kernels are left. (Kernels are prepared once for all batch sizes, so that weights are not held twice.)
// REQUIRES: every layer has a candidate, and all as many times. Errors are those of `conversion_times`.
StatusOr<std::vector<int>> ChooseKernels(const Network& network, const std::vector<std::vector<Candidate>>& candidates,
                                         const ConversionTimes& conversion_times);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_KERNEL_CHOICE_H_
