// Whether a graph keeps its invariants. Run after the reader and after every pass.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_VERIFY_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_VERIFY_H_

#include "model_loader/graph/graph.h"
#include "model_loader/graph/operators.h"

namespace swizzle {

// INVALID_ARGUMENT, naming the node or value, unless:
//  - all indices are in range, and every node has a name and a known operator with its number of inputs and outputs;
//  - every value is at most one of: graph input, constant, output of one node;
//  - every node reads only constants, graph inputs and values made before it;
//  - every graph output has a name of its own and is made by something;
//  - constants have the dtype, shape and byte size that their value says; shapes are free in dimension 0 alone.
Status Verify(const Graph& graph);

// The same with the operators that `find` knows, and with shapes that may be free in any dimension.
Status VerifyAnyShape(const Graph& graph, OperatorFinder find);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_VERIFY_H_
