// The architectures that Swizzle is measured on, at full size, with drawn weights: a sparse model's speed depends on
// where its zeros are, not on what it was trained for.
#ifndef SWIZZLE_TESTS_SUPPORT_DRAWN_MODELS_H_
#define SWIZZLE_TESTS_SUPPORT_DRAWN_MODELS_H_

#include <string>

#include "kernels/base/status.h"
#include "model_loader/network/network.h"

namespace swizzle::testing {

// "mobilenet_v1" or "mobilenet_v1:1.4" for that width (Howard et al., 2017; all 1x1 convolutions but the first are
// pruned, as in Sputnik's evaluation), "resnet50" (He et al., 2015, strides in the 3x3 convolutions, as PyTorch has
// them; all but the stem and the classifier pruned), "minilm" (6 layers of 384, mean of tokens) and "bert-base" (12 of
// 768, pooler), the linear layers of whose blocks are pruned. INVALID_ARGUMENT for any other name.
StatusOr<Network> MakeDrawnModel(const std::string& name, double sparsity);

// Draws the places of the nonzeros of sparse weights again: groups of vector_rows rows, drawn, keep the same columns,
// as pruning to Shfl-BW leaves them. The sparsity is that of the weight.
void DrawVectors(Network& network, int64_t vector_rows);

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_DRAWN_MODELS_H_
