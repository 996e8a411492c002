// Writes networks with drawn weights, layer by layer, for tests and benchmarks.
#ifndef SWIZZLE_TESTS_SUPPORT_NETWORK_BUILDER_H_
#define SWIZZLE_TESTS_SUPPORT_NETWORK_BUILDER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/format/attention_pattern.h"
#include "model_loader/network/network.h"

namespace swizzle::testing {

inline constexpr Epilogue kNoEpilogue = {};
inline constexpr Epilogue kRelu = {0.0f, std::numeric_limits<float>::infinity(), false};
inline constexpr Epilogue kRelu6 = {0.0f, 6.0f, false};

Window SquareWindow(int32_t kernel, int32_t stride, int32_t pad);

// A matrix with exactly round(sparsity * rows * cols) zeros at drawn places; the products of a row keep the scale of
// its inputs.
DenseMatrix MakeRandomMatrix(int64_t rows, int64_t cols, double sparsity, uint32_t seed);

// Appends layers; each method returns the value that it made, named after its layer. A weight of a sparsity above 0 is
// stored as CSR. The same calls give the same network.
class NetworkBuilder {
 public:
  // batch_size: 0 leaves it free.
  NetworkBuilder(uint32_t seed, int64_t batch_size);

  int Value(const std::string& name, int64_t channels, int64_t height = 1, int64_t width = 1);
  const NetworkValue& value(int i) const { return network_.values[i]; }

  // residual: a value that the epilogue adds; -1: none. A linear layer is a convolution of one position.
  int Conv(int input, int64_t outputs, Window window, double sparsity, Epilogue epilogue, int residual = -1);
  int Linear(int input, int64_t outputs, double sparsity, int residual = -1);
  int Depthwise(int input, Window window, Epilogue epilogue);
  int Pool(Op op, int input, Window window);
  // The mean of each plane.
  int MeanOfPlane(int input);
  // kAdd, kMultiply, kScale, kActivation, kSoftmax.
  int Pointwise(Op op, std::vector<int> inputs, Epilogue epilogue = {});
  int Function(int input, const swizzle::Function& function);
  int Concat(std::vector<int> inputs);        // their channels
  int ConcatPlanes(std::vector<int> inputs);  // to [channels, 1, positions]
  int Slice(int input, int64_t first, int64_t channels);
  int Resize(int input, int64_t height, int64_t width, const Resampling& how);
  int DepthToSpace(int input, int32_t block);
  int Transpose(int input);  // [C,H,W] to [H*W,1,C]
  int Flatten(int input);

  // Of token sequences. Embedding of ids, or, where `ids` is -1, of positions from `offset` on.
  int Ids(const std::string& name);
  int Embedding(int ids, int64_t rows, int64_t channels, int64_t offset = 0);
  int LayerNorm(int input);
  // Heads of q share those of k and v where these have fewer channels.
  int Attention(int q, int k, int v, int32_t heads, float scale);
  // All channels of heads of `size`, in pairs of which there are `pairs`, by a table of so many positions.
  int Rotary(int input, int32_t size, int32_t pairs, int64_t positions);
  // Biases by distance, of which the farthest ahead exclude keys.
  int BiasedAttention(int q, int k, int v, int32_t heads, float scale, int64_t reach);
  // Places of the distances around 0, one each.
  int DisentangledAttention(int q, int k, int v, int32_t heads, float scale, int64_t places);
  // Within windows of `length` tokens, of which a sequence has so many, each with biases of its own.
  int WindowAttention(int q, int k, int v, int32_t heads, float scale, int64_t length, int64_t windows);
  // The tokens of sequences of `length` in the opposite order.
  int ReverseTokens(int input, int64_t length);
  int SparseAttention(int q, int k, int v, int32_t heads, float scale, AttentionPattern pattern);
  int SelectFirstToken(int input);
  int MeanTokens(int input);

  // A float port of the value, [channels] or [channels, height, width].
  NetworkPort Port(int value, const std::string& name) const;
  // What has been built so far, without ports. Used once.
  Network Finish() { return std::move(network_); }

 private:
  Layer NewLayer(Op op, std::vector<int> inputs) const;
  // Makes the output value: the first input's extent through the layer's window.
  int Append(Layer layer, int64_t channels);
  int AppendTokens(Layer layer, int64_t channels, bool per_token);
  int AddWeight(int64_t rows, int64_t cols, double sparsity, bool bias);

  uint32_t seed_;
  Network network_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_NETWORK_BUILDER_H_
