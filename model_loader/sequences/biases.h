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
// An element-wise operator.
StatusOr<Form> CombineDistances(Context& context);
// Of a table [numbers, heads], of which `distances` names a row each.
StatusOr<Form> GatherByDistance(Context& context, const Distances& distances);
// Of Trilu, in sequences of any length.
StatusOr<Form> TriangleOfDistances(Context& context, int64_t diagonal, bool upper);
// Of a constant [.., 1 or heads, N, N] whose numbers go by distance, for sequences of at most N tokens; nothing if it
// is none.
std::optional<Distances> DistancesOfTable(Context& context, const Known& known);

// Scores that numbers are added to, or, where `use` says so, that truth values leave.
StatusOr<Scores> WithDistances(Context& context, Scores scores, const Distances& distances);
StatusOr<Scores> WhereDistances(Context& context, Scores scores, Distances condition, bool keeps, double fill);
// Scores that input `input`, a constant [.., 1 or heads, length, length], is added to.
StatusOr<Scores> WithPairBiases(Context& context, Scores scores, size_t input, double sign);
// Of scores that are multiplied by `factor`.
void ScaleBiases(Scores& scores, double factor);
// The canonical operator of attention whose scores have biases.
StatusOr<int> BiasedAttentionOf(Context& context, const Scores& scores, int values);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_BIASES_H_
