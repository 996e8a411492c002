// A network: the typed, fused form of a model that plans are made from and that .swz files hold.
//
// Layers stand in execution order and refer to values by index; every layer makes exactly one value. Value 0 .. n-1 are
// described by `values`. All activations are FP32. The batch dimension is free (batch_size 0) or fixed.
// A Network is a value type; Validate() is run after lowering and after opening a packed file, and everything later
// trusts it.
#ifndef SWIZZLE_MODEL_LOADER_NETWORK_H_
#define SWIZZLE_MODEL_LOADER_NETWORK_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/status.h"
#include "kernels/tensor.h"

namespace swizzle {

// What a layer does; kernels solve all but kReshape, which only renames positions and channels.
enum class LayerKind : uint8_t {
  kConv, kDepthwiseConv, kAdd, kActivation, kMaxPool, kAveragePool, kSoftmax,
  kReshape,  // [batch, C, H, W] -> [batch, C*H*W, 1, 1] or any other split of the same row
  kMultiply, kScale, kFunction, kTranspose,
};
std::string_view LayerKindName(LayerKind kind);

// Whether the layer has two operands, both read alike: kAdd, kMultiply, kScale.
bool IsBinary(LayerKind kind);

// One activation, without its batch dimension. channels, height and width are at least 1.
struct NetworkValue {
  std::string name;
  int64_t channels = 0;
  int64_t height = 1;
  int64_t width = 1;

  Extent WithBatch(int64_t batch) const { return Extent{batch, channels, height, width}; }
  int64_t elements() const { return channels * height * width; }
};

struct Layer {
  LayerKind kind = LayerKind::kConv;
  std::string name;          // of the ONNX node it came from (or the first of those fused)
  std::vector<int> inputs;   // values; {x}, {x, residual} where epilogue.residual, {a, b} for IsBinary
  int output = -1;           // value
  Window window;             // convolutions and pools
  Epilogue epilogue;
  int weight = -1;           // index into Network::weights; -1: none
  Function function;         // kFunction; elsewhere as made
};

// How one input or output looks to a client.
struct NetworkPort {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape dims;   // without the batch dimension where that is free; with it where it is fixed
  int value = -1;
};

struct Network {
  std::string producer;      // "pytorch 2.11.0"; informative
  int64_t batch_size = 0;    // 0: free
  std::vector<NetworkValue> values;
  std::vector<Layer> layers;
  std::vector<Weight> weights;
  std::vector<NetworkPort> inputs;
  std::vector<NetworkPort> outputs;

  // INVALID_ARGUMENT, naming the layer, if an index is out of range, a value is used before it is made or made twice,
  // an extent does not follow from the layer's window and inputs, a weight's shape does not fit its layer, a sparse
  // weight is malformed, or a port names no value or has other elements than its value.
  Status Validate() const;

  int64_t DenseWeightBytes() const;   // of all weights and biases, had they been stored dense
  int64_t StoredWeightBytes() const;  // as their formats store them
};

// The layer's output extent at `batch`, from its window and input. REQUIRES: a validated layer.
Problem LayerProblem(const Network& network, const Layer& layer, int64_t batch, int threads);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_NETWORK_H_
