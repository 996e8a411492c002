// The kernel of every layer of a plan, from measured times: joint with the layouts between layers (layout_choice.h),
// and at no measured batch size slower than dense kernels alone. First one for all sizes, whose packed weights are held
// in any case; then for each size what is fastest with the weights that are held.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_KERNEL_CHOICE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_KERNEL_CHOICE_H_

#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/candidates.h"

namespace swizzle {

// Microseconds per measured batch size of converting a value; empty where no kernel does.
using ConversionTimes = std::function<StatusOr<std::vector<double>>(const NetworkValue&, Storage from, Storage to)>;

using LayerCandidates = std::vector<std::vector<Candidate>>;

// The index of each layer's candidate, for all batch sizes alike. Every size weighs the same; but where that makes a
// plan slower at one of them than the best of dense kernels alone, that size weighs more and more until it no longer
// is, and in the end the dense kernels are left. REQUIRES: every layer has a candidate, and all as many times. Errors
// are those of `conversion_times`.
StatusOr<std::vector<int>> ChooseKernels(const Network& network, const LayerCandidates& candidates,
                                         const ConversionTimes& conversion_times);

using IsAvailable = absl::FunctionRef<bool(size_t layer, const Candidate& candidate)>;

// The same for each batch size by itself, among candidates that are available; `common`, which have to be, where others
// are hardly faster. A single choice where all are `common`.
StatusOr<std::vector<std::vector<int>>> ChooseKernelsBySize(const Network& network, const LayerCandidates& candidates,
                                                            const ConversionTimes& conversion_times,
                                                            const std::vector<int>& common, IsAvailable available);

// A packed form of a layer's weight that is not held, and would make batches of some size faster.
struct WantedForm {
  size_t layer = 0;
  int candidate = 0;  // that reads it
  double gain = 0.0;  // of the plan's time, over all batch sizes, as a share of each
};

// Those that were measured, or a like layer's were; most gain per byte of the weight first. `common`: whose forms are
// held. `least_worth`: what the mean gain over batch sizes has to be, over the share of all held bytes that the form
// takes: with .1 a tenth more memory has to gain a hundredth of the time.
StatusOr<std::vector<WantedForm>> FindWantedForms(const Network& network, const LayerCandidates& candidates,
                                                  const ConversionTimes& conversion_times,
                                                  const std::vector<int>& common, double least_worth);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_KERNEL_CHOICE_H_
