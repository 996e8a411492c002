// Regions of token sequences: encoders with their attention, planned as one network where activations come from
// elsewhere in the program (sequences/section.h).
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SEQUENCE_REGIONS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SEQUENCE_REGIONS_H_

#include <vector>

#include "model_loader/regions/region.h"

namespace swizzle::regions {

struct SequenceRegion {
  Region region;    // of Form::kSequences
  Network network;  // of which inputs and outputs are in the region's order
};

// Regions with attention, none of which has a node of another. Inputs of one have the same batch and length in every
// run (shapes/symbolic_walk.h). There are none in a program of quantised products, whose other regions keep bytes
// between them.
std::vector<SequenceRegion> FindSequenceRegions(const Graph& graph, const Survey& survey);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SEQUENCE_REGIONS_H_
