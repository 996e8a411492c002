// What the graphs of all families of encoders are written with: inputs and outputs, nodes, linear layers whatever their
// weights are stored as, norms, activations, heads. A family's builder derives from it.
//
// A node is called after its place, such as "encoder.layer.0.output.dense/MatMul", and a constant after its tensor.
// Values are FP32, and those that say so INT64. Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_BUILDER_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/checkpoint_weights.h"
#include "model_loader/safetensors/encoder_activation.h"

namespace swizzle {

class EncoderBuilder {
 protected:
  EncoderBuilder(CheckpointWeights weights, float norm_eps);
  ~EncoderBuilder() = default;

  // Of ONNX's TensorProto.
  static constexpr int64_t kOnnxFloat = 1, kOnnxInt64 = 7, kOnnxBool = 9;

  // An input of tokens, INT64 [batch, sequence].
  int Input(const std::string& name);
  void Output(const std::string& name, int value, Shape shape);

  // Constants: FP32 [], INT64 [], and INT64 [values].
  int Scalar(const std::string& name, float value);
  int Number(const std::string& name, int64_t value);
  int List(const std::string& name, const std::vector<int64_t>& values);
  // The checkpoint's tensor of that name, in FP32.
  StatusOr<int> Constant(const std::string& name, const Shape& shape);

  // Adds a node called `place`/`op` and returns its output. A place has each operator once.
  int Add(const std::string& place, const std::string& op, std::vector<int> inputs,
          std::map<std::string, Attribute> attributes = {}, DType dtype = DType::kFloat32);

  // `x` in parts of these sizes.
  std::vector<int> AddSplit(const std::string& place, int x, const std::vector<int64_t>& sizes, int64_t axis);

  // 0 where the mask is 1, the lowest float where it is 0: [batch, 1, 1, sequence], added to the scores.
  int AddMask(int attention_mask);
  // The length of the sequences, INT64 [1], and the positions in them, INT64 [sequence].
  int AddLength(const std::string& place, int input_ids);
  int AddRange(const std::string& place, int input_ids);

  // Over the last dimension, of `size`. Without `has_bias` the bias is 0.
  StatusOr<int> AddLayerNorm(const std::string& name, int x, int64_t size, bool has_bias = true);

  // Likewise by the root mean square, without a bias.
  StatusOr<int> AddRootMeanSquareNorm(const std::string& name, int x, int64_t size);

  // A linear layer of x [.., in], and how many outputs it has.
  struct Linear {
    int value;
    int64_t outputs;
  };
  // `outputs` is -1 where any number will do.
  StatusOr<Linear> AddLinear(const std::string& name, int x, int64_t inputs, int64_t outputs, bool has_bias = true);

  // The same linear layer of several values, the first of them tokens. UNIMPLEMENTED where it is of whole numbers.
  StatusOr<std::vector<int>> AddSharedLinear(const std::string& name, const std::vector<int>& xs, int64_t inputs,
                                             int64_t outputs);

  // [batch, sequence, heads x head size] as [batch, heads, sequence, head size], or with `order`.
  int AddHeads(const std::string& name, int x, int64_t heads, int64_t head_size, std::vector<int64_t> order);
  // What attention made of values, [batch, heads, sequence, head size], as [batch, sequence, rows].
  int AddJoinedHeads(const std::string& name, int by_head, int64_t rows);

  int AddActivation(const std::string& name, int x, EncoderActivation activation);
  // Of the first token, and the mean of the tokens that the mask has 1 for: [batch, size].
  int AddFirstToken(const std::string& name, int hidden_state);
  int AddMeanToken(const std::string& name, int hidden_state, int attention_mask);
  // BERT's, the output pooler_output: of the first token a linear layer and tanh.
  StatusOr<int> AddPooler(int hidden_state, int64_t size);

  // The output logits: a linear layer of what `input` has.
  Status AddLogits(const std::string& name, Linear input);

  // The graph. INVALID_ARGUMENT, naming one, if tensors were not read.
  StatusOr<Graph> Finish();

  CheckpointWeights weights_;
  Graph graph_;

 private:
  // What DynamicQuantizeLinear makes of a value.
  struct Rounded {
    int wholes, scale, zero_point;
  };

  const Rounded& Round(int x);
  std::vector<int> AddScaling(const std::string& name, Scaling scaling);
  int AddRounding(const std::string& name, int x, Scaling scaling);
  int AddProduct(const std::string& name, int x, LinearWeight weight);
  int AddGelu(const std::string& name, int x, bool by_tanh);
  int AddClip(const std::string& name, int x, float low, float high);

  const float norm_eps_;
  std::map<int, Rounded> rounded_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_BUILDER_H_
