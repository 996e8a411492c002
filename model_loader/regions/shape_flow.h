// What of a graph goes by the elements of its inputs, and what by their shapes alone.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_FLOW_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_FLOW_H_

#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle::regions {

// Whether no shape of a value depends on the elements of an input. Of graphs within nodes this is said only where it is
// certain. REQUIRES: operators of the operator table.
bool ShapesFollowShapes(const Graph& graph);

// Nodes, in order, that make the same of all inputs of the same shapes: they read constants, and the shapes of others.
// None where shapes of values go by elements.
std::vector<int> SteadyNodes(const Graph& graph);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SHAPE_FLOW_H_
