// Whether a Dropout leaves its input as it is. Pure function.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_DROPOUT_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_DROPOUT_H_

#include "model_loader/graph/graph.h"

namespace swizzle {

// UNIMPLEMENTED, naming the node, where it trains, or may. Its mask says nothing where it doesn't.
Status CheckInference(const Graph& graph, const Node& dropout);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_DROPOUT_H_
