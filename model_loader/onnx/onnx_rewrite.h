// Edits the weights of an ONNX model and leaves everything else as it is, so that training can go on from the result.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_REWRITE_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_REWRITE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/onnx/onnx_reader.h"

namespace swizzle {

// An initializer or Constant node, dense or sparse, that is the weight of convolutions (of one group) or linear layers,
// and of nothing else. It may be of a graph within a node, or read there.
struct OnnxWeight {
  std::vector<std::string> names;  // of the nodes that use it, then its own: the initializer's or the output's
  Shape shape;
  bool outputs_last = false;  // the last dimension is the outputs', as of what MatMul multiplies with; else the first
  bool both_ways = false;     // nodes differ in that; the first one's then stands above
  // Layers read it through a Cast, a Transpose or a factor, or in a graph within a node: where calibration does not
  // follow it.
  bool is_indirect = false;

  // Of a window: elements of an output and an input channel.
  int64_t taps() const;
};

// Calls `edit` with every weight, in the file's order, and its elements to change in place. Weights are the
// initializers and Constant nodes that Conv with group 1, Gemm and MatMul read, directly or through Identity, Cast, the
// Transpose of a matrix, and Mul or Div by one number; any operators may stand beside these. What is cast may be of
// halves or of whole numbers of up to 16 bits, and gets what was made of it rounded.
// Returns the model as a file again: the elements keep their encoding, and fields unknown here survive. What lies in
// external files is put inside, so that the result may be kept anywhere. Sparse initializers come after the others, and
// Constant nodes after these; sparse weights stay sparse, without the zeros among their values.
// INVALID_ARGUMENT if the model is malformed; UNIMPLEMENTED if a weight is not FP32; the errors of ReadOnnx for
// external data; RESOURCE_EXHAUSTED if the result is too large for one file.
StatusOr<std::vector<std::byte>> RewriteOnnxWeights(
    std::span<const std::byte> model, const std::function<void(const OnnxWeight&, std::span<float>)>& edit,
    const ReadOptions& options = {});

// What layers multiply with and RewriteOnnxWeights leaves out, and why, for messages: "'w' (behind Add node 'a')". None
// for what is no model.
std::vector<std::string> UnseenOnnxWeights(std::span<const std::byte> model);

// Whether some of its operators make whole numbers of real ones or the other way round, so that what it multiplies with
// is seldom FP32. False for what is no model.
bool IsQuantisedOnnx(std::span<const std::byte> model);

// A model whose initializers lie apart: that of tensors[i] in the external file called "i".
struct DetachedModel {
  std::vector<std::byte> model;
  std::vector<Tensor> tensors;
  // By tensor: which weight it is, as RewriteOnnxWeights has it, or one of INT8 or UINT8 that convolutions of one
  // group, Gemm or MatMul, or their kin for whole numbers, read directly or through DequantizeLinear.
  std::vector<std::optional<OnnxWeight>> weights;
};

// Takes the elements of the graph's dense initializers out, and of matrices that Constant nodes hold, but for strings,
// for elements of less than a byte or of FP8, and for what is less than `least_bytes`; what else lies in external files
// is put inside. Errors are as above.
StatusOr<DetachedModel> DetachInitializers(const OnnxSource& model, int64_t least_bytes,
                                           const ReadOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_REWRITE_H_
