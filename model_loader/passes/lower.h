// From the canonical graph to a network.
#ifndef SWIZZLE_MODEL_LOADER_PASSES_LOWER_H_
#define SWIZZLE_MODEL_LOADER_PASSES_LOWER_H_

#include "model_loader/graph/graph.h"
#include "model_loader/network/network.h"

namespace swizzle {

// The network of a graph that all passes have run on, validated. A Reshape that leaves channels, height and width as
// they are becomes no layer; an output that is an input is copied by a layer, for the two must not share memory.
// UNIMPLEMENTED for outputs that are constants or shapes.
StatusOr<Network> Lower(Graph graph);

// The format that holds a convolution's weight, by a table of formats and when they pay: CSR where at least half of it
// is zeros, dense otherwise.
// At half, CSR's 4 bytes a value and 2 an index (4 past 65536 columns) are never more than dense's 4 bytes an element,
// row offsets aside. Kernels break even at higher sparsity, but that is not decided here: dense kernels take CSR
// weights too, and the planner measures both, whereas a weight kept dense is never tried on sparse kernels.
WeightMatrix ChooseFormat(DenseMatrix matrix);
// Whether it chooses this one for some matrix; others are what who made the weight asked for.
bool IsChosen(Format format);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PASSES_LOWER_H_
