// From the ONNX graph of an encoder over token sequences to canonical operators.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_RECOGNISE_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_RECOGNISE_H_

#include <string>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Rewrites a graph whose `sequences` say that its inputs are [batch, length] of whole numbers: what is left are the
// canonical operators (graph/operators.h) on matrices of tokens and of rows, and `sequences` says which input is the
// mask and what it does. Returns how many of each kind were found: "embedding", "linear", "attention", "layer_norm",
// "gelu" and the like. UNIMPLEMENTED, naming the node, its opset and the reason, where an output cannot be had so; the
// graph is in no state to be used then. REQUIRES: ResolveConstants and RemoveNoOps have run (passes/passes.h).
StatusOr<std::vector<std::pair<std::string, int>>> RecogniseSequences(Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_RECOGNISE_H_
