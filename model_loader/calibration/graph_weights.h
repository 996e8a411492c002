// The weights of a graph as a reader made it, for models that come in no ONNX file.
#ifndef SWIZZLE_MODEL_LOADER_CALIBRATION_GRAPH_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_CALIBRATION_GRAPH_WEIGHTS_H_

#include <vector>

#include "model_loader/calibration/calibrate.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// FP32 matrices that MatMul or Gemm multiply with, as input 1, and that nothing else reads; in the order of values.
std::vector<NamedWeight> WeightsOf(const Graph& graph);

// Puts their elements into the graph that they are of.
void SetWeights(const std::vector<NamedWeight>& weights, Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_CALIBRATION_GRAPH_WEIGHTS_H_
