// What attention adds to its scores by a key's distance from its query, or for each pair of places: from positions,
// tables and masks to the canonical biased attention. Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_BIASES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_BIASES_H_

#include <optional>

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// What an element-wise operator makes of positions of queries and of positions of keys, where that goes by their
// distance alone; nothing otherwise.
std::optional<Distances> DistancesOfPositions(Context& context, const Positions& a, const Positions& b);
// What an element-wise operator makes of numbers by distance.
StatusOr<Form> CombineDistances(Context& context);
// What a table [numbers, heads] holds, of which `distances` names a row each.
StatusOr<Form> GatherByDistance(Context& context, const Distances& distances);
// What Trilu leaves, in sequences of any length.
StatusOr<Form> TriangleOfDistances(Context& context, int64_t diagonal, bool upper);
// What a constant [.., 1 or heads, N, N] holds, whose numbers go by distance, for sequences of at most N tokens;
// nothing if it is none.
std::optional<Distances> DistancesOfTable(Context& context, const Known& known);

// Adds numbers to scores; or excludes keys by adding `fill` where the condition is not `keeps`.
StatusOr<Scores> WithDistances(Context& context, Scores scores, const Distances& distances);
StatusOr<Scores> WhereDistances(Context& context, Scores scores, Distances condition, bool keeps, double fill);
// Adds input `input`, a constant [.., 1 or heads, length, length], to scores; of windows of `length` tokens it may have
// a dimension for each of these, too.
StatusOr<Scores> WithPairBiases(Context& context, Scores scores, size_t input, double sign);
// Multiplies what was added to scores.
Status ScaleBiases(Context& context, Scores& scores, double factor);
// The canonical operator of attention whose scores have biases.
StatusOr<int> BiasedAttentionOf(Context& context, const Scores& scores, int values);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_BIASES_H_
