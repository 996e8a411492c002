// Which values of a graph are rounded to whole numbers where its layers are: what they multiply, and, of planes, what
// is moved, added or otherwise computed on the way to them, so that it need not become real numbers in between.
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_ROUNDINGS_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_ROUNDINGS_H_

#include <functional>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Whether the node is a layer of weights that whole numbers are for: a Conv, Gemm or MatMul of a value and a constant.
bool IsWeightedLayer(const Node& node, const std::function<bool(int)>& is_constant);

// By value: one that stands for all that have the same scale, since they have nothing but numbers of each other; -1:
// the value stays real. is_whole: whether a weighted layer is to be of whole numbers. is_plane: whether a value is FP32
// and has four dimensions.
std::vector<int> FindRoundings(const Graph& graph, const std::function<bool(const Node&)>& is_whole,
                               const std::function<bool(int)>& is_constant, const std::function<bool(int)>& is_plane);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_ROUNDINGS_H_
