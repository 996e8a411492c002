// Magnitude pruning: the smallest weights of each layer become zero (Han et al., "Learning both Weights and Connections
// for Efficient Neural Networks", 2015). One shot, per layer, without training.
#ifndef SWIZZLE_MODEL_LOADER_PRUNING_MAGNITUDE_H_
#define SWIZZLE_MODEL_LOADER_PRUNING_MAGNITUDE_H_

#include <span>

namespace swizzle {

// Zeros the smallest magnitudes until round(sparsity * size) elements are zero; fewer never become zero, so weights
// that are sparser already stay as they are. Of equal magnitudes the first go first. What is not a number counts as the
// largest. Where there are scores, those of least score go in place of the smallest; zeros go first whatever their
// score. REQUIRES: 0 <= sparsity <= 1; no scores, or one a weight, all of them numbers.
void PruneSmallest(std::span<float> weights, double sparsity, std::span<const float> scores = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PRUNING_MAGNITUDE_H_
