// The stem of a region of sequences: layers of images, the positions of whose last planes are the region's tokens, as
// the patches of a vision transformer are (Dosovitskiy et al., 2020), or the frames of a speech model's convolutions.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_TOKEN_STEM_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_TOKEN_STEM_H_

#include <set>

#include "model_loader/regions/sequence_regions.h"

namespace swizzle::regions {

// Has the region begin with its stem, where it has one: one of its inputs has the positions of planes for its tokens,
// perhaps behind vectors that are the same for every row (a class token, registers) or with such added, and all that
// these planes are made of is one network of images, of which nothing else reads anything. Otherwise the region stays
// as it is. taken: nodes of other regions.
void AddStem(const Graph& graph, const Survey& survey, const std::set<int>& taken, SequenceRegion& region);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_TOKEN_STEM_H_
