// Whether a graph treats the rows of its inputs (the slices along dimension 0) each on their own, so that requests can
// be put into one batch without changing any result.
//
// The walk over shapes (symbolic_walk.h) follows the batch as a symbol through sizes and what graphs compute of them;
// beside it each value is followed as far as is known where in it rows lie (batch_rows.h): a request's elements lie
// together, and what is computed of them reads no other's.
#ifndef SWIZZLE_MODEL_LOADER_SHAPES_BATCH_PROOF_H_
#define SWIZZLE_MODEL_LOADER_SHAPES_BATCH_PROOF_H_

#include <optional>
#include <string>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Nothing where it is certain that rows are independent, of requests whose inputs have the same dimensions but for
// dimension 0, none of them 0, in batches of up to 4096 rows: every input is declared with a free one there, every
// output with that or no shape, and every node on the way is known to keep rows apart. Else what stands against it, for
// whoever exports the model: "CumSum node 'x' may join requests". Malformed attributes prove nothing. REQUIRES: the
// operators of all nodes are in the table; constants still have their elements.
std::optional<std::string> BatchObstacle(const Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SHAPES_BATCH_PROOF_H_
