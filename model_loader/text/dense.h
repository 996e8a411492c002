// Linear layers behind the pooled tokens, which Sentence Transformers call Dense: read from their folder, and as nodes
// at the end of an encoder's graph. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_TEXT_DENSE_H_
#define SWIZZLE_MODEL_LOADER_TEXT_DENSE_H_

#include <optional>
#include <string>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/files/contained_file.h"
#include "model_loader/graph/graph.h"

namespace swizzle::text {

// Value type; FP32.
struct DenseLayer {
  std::string name;            // of its folder, "2_Dense"
  Tensor weight;               // [in, out]
  std::optional<Tensor> bias;  // [out]
  std::string activation;      // ONNX's operator; empty: none
};

// By config.json and model.safetensors in `path`, a folder below the model's. INVALID_ARGUMENT, naming the file, if one
// is malformed or they differ in size, UNIMPLEMENTED for other activation functions than Identity, Tanh, ReLU and
// Sigmoid, by their name; and errors of ContainedFile.
StatusOr<DenseLayer> ReadDense(const ModelFolder& folder, const std::string& path);

// Has the graph's only output, [batch, in], go through the layer. INVALID_ARGUMENT if it is of another width.
Status AddDense(const DenseLayer& layer, Graph& graph);

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_DENSE_H_
