// Products of tokens with vectors of places: what content says about how far one token is from another (DeBERTa's
// disentangled attention). Internal to the recogniser (recognise.h).
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_PLACES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_PLACES_H_

#include "model_loader/sequences/context.h"

namespace swizzle::sequences {

// A constant of several dimensions, or what was made of one.
StatusOr<ConstantVectors> AsConstantVectors(Context& context, size_t input);

// Whether MatMul multiplies the heads of tokens with constant vectors of theirs.
bool MeetsPlaces(Context& context);
// The products, times `alpha`. REQUIRES: MeetsPlaces.
StatusOr<Form> PlaceProductsOf(Context& context, double alpha);
// GatherElements: for each pair of tokens the product with the place of their distance.
StatusOr<Form> TakePlaces(Context& context);
// Makes queries of keys where a transpose has just made rows of columns.
void TurnPlaces(PlaceProducts& products);
// An element-wise operator that sums or scales them.
StatusOr<Form> CombinePlaceProducts(Context& context);

// The scores with such products added.
StatusOr<Scores> WithPlaces(Context& context, Scores scores, const PlaceProducts& products);
// The canonical attention of scores with places to `values`, of the new graph.
StatusOr<int> DisentangledAttentionOf(Context& context, const Scores& scores, int values);

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_PLACES_H_
