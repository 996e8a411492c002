// The epilogue of a canonical node, as its attributes and inputs say it.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_EPILOGUES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_EPILOGUES_H_

#include "kernels/backend/kernel_table.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// Input of Conv and DepthwiseConv that is added before the clamp.
inline constexpr size_t kResidualInput = 3;

// Bounds from the attributes low and high; absent ones are infinite.
Epilogue EpilogueOf(const Node& node);
void SetBounds(Node& node, float low, float high);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_EPILOGUES_H_
