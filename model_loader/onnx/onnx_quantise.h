// Quantises the linear layers of an ONNX model dynamically, and leaves everything else as it is: DynamicQuantizeLinear,
// MatMulInteger, Cast and Mul stand in place of each product with a weight, as ONNX Runtime's quantize_dynamic has it.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_QUANTISE_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_QUANTISE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/onnx/onnx_reader.h"

namespace swizzle {

// Of MatMul and Gemm whose second input is a dense initializer [inputs, outputs] (Gemm: either way round; transA 0,
// alpha and beta 1), read directly or through Identity, and whose names `skips` does not return true for. Weights are
// INT8 by output channel (RoundToSteps). Weights that nothing reads any more go, out of the list of inputs, too, where
// old files have them; such files become of IR version 4. Returns the model as a file again, with what lay in external
// files inside. A model of an opset below 11, which has no such operators, becomes one of 11; errors are those of that
// (convert_opset.h), and of RewriteOnnxWeights.
StatusOr<std::vector<std::byte>> QuantiseOnnxDynamically(std::span<const std::byte> model,
                                                         const std::function<bool(const std::string&)>& skips,
                                                         const ReadOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_QUANTISE_H_
