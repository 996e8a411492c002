// Puts QuantizeLinear and DequantizeLinear behind activations of an ONNX model, for its layers and for what moves, adds
// or otherwise computes them, and leaves everything else as it is: QDQ, as ONNX Runtime's quantize_static has it.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_QUANTISE_STATIC_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_QUANTISE_STATIC_H_

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/quantised.h"
#include "kernels/base/status.h"
#include "model_loader/onnx/onnx_reader.h"

namespace swizzle {

// How an activation is rounded, and what it was on average: by channels of dimension 1, which convolutions have, and of
// the last, which products have. Empty where nobody knows. The plane is what follows dimension 1.
struct RoundedActivation {
  Quantised as;
  std::vector<double> plane_means = {};
  std::vector<double> vector_means = {};
  Shape plane = {};
};

// What became of a layer.
struct QuantisedNode {
  std::string name;              // of the node, or of its output where it has none
  std::string input;             // value; empty: the layer stays as it is
  double weight_decibels = 0.0;  // signal to noise of its weight's whole numbers
};

struct QuantisedOnnx {
  std::vector<std::byte> model;
  std::vector<QuantisedNode> layers;
};

// Of Conv, and of MatMul and Gemm with a matrix (transA 0, alpha and beta 1), whose weight is a dense initializer,
// whose input is among `activations`, and whose names `skips` does not return true for. Weights are INT8 by output
// channel (RoundToSteps), biases that are initializers INT32 by the product of both scales. What the rounding of
// weights adds on average comes off the bias, of MatMul off what an Add puts on it; convolutions and Gemm get a bias
// where they have none. Not of convolutions of which a quarter of a dimension or more is padding. Weights that nothing
// reads any more go. `model` has no external data. One of an opset below 13, in which DequantizeLinear has no
// channels, becomes one of 13 (convert_opset.h).
StatusOr<QuantisedOnnx> QuantiseOnnxStatically(std::span<const std::byte> model,
                                               const std::map<std::string, RoundedActivation>& activations,
                                               const std::function<bool(const std::string&)>& skips);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_QUANTISE_STATIC_H_
