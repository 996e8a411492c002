// The text form of a graph, for golden tests and for people. Stable: equal graphs give equal text.
//
//   input %x: FP32[N,3,8,8]
//   constant %w: FP32[16,3,3,3]
//   %y = swizzle.Conv(%x,%w,_,%r) {low=0,strides=[2,2]} "stem" -> FP32[N,16,4,4]
//   output "logits" = %y
//
// N is the free batch, _ an input left out, [?] an unknown shape; "stem" is the node's name. Constants stand before the
// nodes, with their elements where they have at most eight. Floats have the digits that tell them from all others.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_PRINT_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_PRINT_H_

#include <string>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Ops of the domain "swizzle" are printed with that prefix: `swizzle.Conv`. REQUIRES: Verify(graph) is OK.
std::string Print(const Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_PRINT_H_
