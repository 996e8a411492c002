// Linear layers with a residual, and layer norms that alone read their sums: pairs that one kernel may compute
// (kernels/cuda/conv/shfl_bw/conv_shfl_bw_norm.h). A network keeps both; a plan may take a kernel for both in place of
// one each.
//
// The choice of layouts sees such a kernel as the linear layer's, with what it makes stored in a way that nothing
// converts (kWithinPair), and as an option of the norm that takes what is stored so, for nothing.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_NORM_PAIRS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_NORM_PAIRS_H_

#include <cstddef>
#include <vector>

#include "kernels/base/storage.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/candidates.h"
#include "model_loader/plan/choose/kernel_choice.h"

namespace swizzle {

// No kernel has rows of ids.
inline constexpr Storage kWithinPair = {Layout::kRows, DType::kInt32};

struct NormPair {
  size_t product = 0, norm = 0;  // layers
  bool operator==(const NormPair&) const = default;
};

// Whose linear layer has a sparse weight. REQUIRES: weights are there.
std::vector<NormPair> FindNormPairs(const Network& network);

// Both as one layer, without a weight: a norm of what the linear layer reads, with a residual.
Layer LayerOfPair(const Network& network, NormPair pair);
// Its weight: the linear layer's, whose bias is followed by the norm's scales and biases.
Weight WeightOfPair(const Network& network, NormPair pair);

// Offers a kernel that computes the pair, as the linear layer's candidate `both`, to it and to the norm.
void OfferPair(NormPair pair, Candidate both, LayerCandidates& layers);

// What Measurer::MeasureLayers gives, with kernels for pairs where the device has some. A pair is measured as one more
// layer, and offered where its times are as good as those of its layers: all measured, or all estimated.
StatusOr<LayerCandidates> MeasureWithPairs(const Network& network, Backend& backend, RunSettings settings,
                                           bool dense_only, Measurer& measurer);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_NORM_PAIRS_H_
