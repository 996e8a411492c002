// What of a graph goes by the elements of its inputs, and what by their shapes alone: by what the operator table says
// of each operator (OperatorFacts). What it doesn't list is taken to go by all.
//
// Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_SHAPE_FLOW_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_SHAPE_FLOW_H_

#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Whether the node's results are the same of all inputs of the same shapes, whatever their elements.
bool ReadsShapesAlone(const Node& node);

// By value: whether its elements depend on those of an input of the graph, where its shape does not.
std::vector<bool> GoByElements(const Graph& graph);

// Whether no shape of a value depends on the elements of an input. Of graphs within nodes this is said only where it is
// certain.
bool ShapesFollowShapes(const Graph& graph);

// Nodes, in order, that make the same of all inputs of the same shapes: they read constants, and the shapes of others.
// None where shapes of values go by elements.
std::vector<int> SteadyNodes(const Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_SHAPE_FLOW_H_
