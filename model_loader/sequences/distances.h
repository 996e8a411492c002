// Numbers for every distance of a key from its query, key - query, in sequences of any length: relative positions (T5,
// MPNet), causal and local masks, ALiBi. They are computed at sampled distances: all near ones, and far ones that show
// whether what is farther is the same.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_DISTANCES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_DISTANCES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model_loader/semantics/point_function.h"

namespace swizzle {

// Every distance up to this one is sampled, on both sides.
inline constexpr int64_t kNearDistance = int64_t{1} << 13;

// They ascend, and as many are below 0 as above.
std::span<const int64_t> SampledDistances();

// Immutable. [state][head][sampled distance]; of two states, the first is of keys whose mask is 0, the other of keys
// whose mask is 1.
struct DistanceNumbers {
  int64_t states = 1;
  int64_t heads = 1;
  std::vector<double> numbers;

  // A single state or head is that of all.
  std::span<const double> Of(int64_t state, int64_t head) const;
};
using SharedDistances = std::shared_ptr<const DistanceNumbers>;

SharedDistances DistancesOf(const std::function<double(int64_t distance)>& function);
SharedDistances DistancesOfHeads(std::span<const double> numbers);  // one for each head, at every distance
SharedDistances DistancesOfMask(double at_zero, double at_one);

// function(inputs), rounded to `dtype`. Null where inputs differ in their number of heads, and both have several.
SharedDistances DistancesApplied(const PointFunction& function, DType dtype, std::span<const SharedDistances> inputs);

// How far from 0 a distance is whose numbers all farther ones on its side share, in all states and heads; nothing where
// samples do not show that, and no sequence is of at most `longest` tokens (0: of any length) that are near.
std::optional<int64_t> ReachOf(const DistanceNumbers& distances, int64_t longest);

// A state's biases, [heads][2 * reach + 1]. REQUIRES: reach <= kNearDistance.
std::vector<float> BiasesWithin(const DistanceNumbers& distances, int64_t state, int64_t heads, int64_t reach);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_DISTANCES_H_
