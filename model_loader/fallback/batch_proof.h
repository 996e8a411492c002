// Whether a graph treats the rows of its inputs (the slices along dimension 0) each on their own, so that requests can
// be put into one batch without changing any result.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_PROOF_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_PROOF_H_

#include "model_loader/graph/graph.h"

namespace swizzle::fallback {

// True only where it is certain: every input and output is declared with a free dimension 0 and no other free one, and
// every node on the way is known to keep rows apart, in whichever dimension they are there. Of the batch size only
// lists are followed that shapes are made of. Malformed attributes prove nothing. REQUIRES: the operators of all nodes
// are in the table; constants still have their elements.
bool RowsAreIndependent(const Graph& graph);

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_PROOF_H_
