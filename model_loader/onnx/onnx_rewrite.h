// Edits the weights of an ONNX model and leaves everything else as it is, so that training can go on from the result.
#ifndef SWIZZLE_MODEL_LOADER_ONNX_ONNX_REWRITE_H_
#define SWIZZLE_MODEL_LOADER_ONNX_ONNX_REWRITE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/onnx/onnx_reader.h"

namespace swizzle {

// An initializer or Constant node, dense or sparse, that is the FP32 weight of convolutions (of one group) or linear
// layers, and of nothing else, nor read by a subgraph.
struct OnnxWeight {
  std::vector<std::string> names;  // of the nodes that use it, then its own: the initializer's or the output's
  Shape shape;
  bool outputs_last = false;  // the last dimension is the outputs', as of what MatMul multiplies with; else the first
  bool both_ways = false;     // nodes differ in that; the first one's then stands above

  // Of a window: elements of an output and an input channel.
  int64_t taps() const;
};

// Calls `edit` with every weight, in the file's order, and its elements to change in place. Weights are the
// initializers and Constant nodes that Conv with group 1, Gemm and MatMul read, directly or through Identity; any
// operators may stand beside these.
// Returns the model as a file again: the elements keep their encoding, and fields unknown here survive. What lies in
// external files is put inside, so that the result may be kept anywhere. Sparse initializers come after the others, and
// Constant nodes after these; sparse weights stay sparse, without the zeros among their values.
// INVALID_ARGUMENT if the model is malformed; UNIMPLEMENTED if a weight is not FP32; the errors of ReadOnnx for
// external data; RESOURCE_EXHAUSTED if the result is too large for one file.
StatusOr<std::vector<std::byte>> RewriteOnnxWeights(
    std::span<const std::byte> model, const std::function<void(const OnnxWeight&, std::span<float>)>& edit,
    const ReadOptions& options = {});

// Whether some of its operators make whole numbers of real ones or the other way round, so that what it multiplies with
// is seldom FP32. False for what is no model.
bool IsQuantisedOnnx(std::span<const std::byte> model);

// A model whose initializers lie apart: that of tensors[i] in the external file called "i".
struct DetachedModel {
  std::vector<std::byte> model;
  std::vector<Tensor> tensors;
};

// Takes the elements of the graph's dense initializers out, and of matrices that Constant nodes hold, but for strings
// and for what is less than `least_bytes`; what else lies in external files is put inside. Errors are as above.
StatusOr<DetachedModel> DetachInitializers(std::span<const std::byte> model, int64_t least_bytes,
                                           const ReadOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_ONNX_ONNX_REWRITE_H_
